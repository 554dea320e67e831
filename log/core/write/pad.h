// SPDX-License-Identifier: Apache-2.0
// pad: the record that fills the ring from the last record of a lap to the end.
//
// Thread safety: a pure function.
#ifndef ALPHEUS_LOG_CORE_WRITE_PAD_H_
#define ALPHEUS_LOG_CORE_WRITE_PAD_H_

#include "log/base/ids.h"
#include "log/format/epoch_table.h"
#include "log/format/layout.h"
#include "log/format/record.h"

namespace alpheus {

// The PAD from `begin` to the end of the ring. `next_lsn` is of the record
// after it.
RecordHeader MakePad(const Ring& ring, const EpochKey& key, Epoch epoch,
                     Lsn next_lsn, Lsn durable_lsn, RingOffset begin);

}  // namespace alpheus

#endif  // ALPHEUS_LOG_CORE_WRITE_PAD_H_
