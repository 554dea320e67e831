// SPDX-License-Identifier: Apache-2.0
// places: places of records and their durability, as messages and as values.
//
// Thread safety: pure functions.
#ifndef ALPHEUS_API_CLIENT_GRPC_PLACES_H_
#define ALPHEUS_API_CLIENT_GRPC_PLACES_H_

#include "alpheus/v1/log_service.pb.h"
#include "api/client/append/append_session.h"

namespace alpheus::client {

inline Place PlaceOf(const v1::Place& place) {
  return {place.epoch(), place.lsn()};
}

inline void SetPlace(const Place& place, v1::Place* out) {
  out->set_epoch(place.epoch);
  out->set_lsn(place.lsn);
}

inline v1::Durability DurabilityOf(Durability durability) {
  switch (durability) {
    case Durability::kAccepted:
      return v1::DURABILITY_ACCEPTED;
    case Durability::kLocal:
      return v1::DURABILITY_LOCAL;
    case Durability::kQuorum:
      return v1::DURABILITY_QUORUM;
    case Durability::kAll:
      return v1::DURABILITY_ALL;
  }
  return v1::DURABILITY_UNSPECIFIED;  // no such value
}

}  // namespace alpheus::client

#endif  // ALPHEUS_API_CLIENT_GRPC_PLACES_H_
