// SPDX-License-Identifier: Apache-2.0
// Below the log: region, integrity, atomicity.
#include <string.h>

#include "tests/api/c/testing.h"

static void RegionKeepsWhatIsPersisted(void) {
  alpheus_region* region = NULL;
  EXPECT_OK(alpheus_region_create(path, 16384, &region, &last_error));
  EXPECT(alpheus_region_bytes(region) == 16384);
  memcpy(alpheus_region_data(region), "kept", 4);
  EXPECT_OK(alpheus_region_persist(region, 0, 4, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_region_persist(region, 16384, 1, &last_error));
  alpheus_region* second = NULL;
  EXPECT_STATE(alpheus_region_open(path, &second, &last_error));
  EXPECT_CODE(ALPHEUS_ALREADY_EXISTS,
              alpheus_region_create(path, 16384, &second, &last_error));
  EXPECT(second == NULL);
  SetMsyncFails(true);
  EXPECT_CODE(ALPHEUS_UNAVAILABLE,
              alpheus_region_persist(region, 0, 4, &last_error));
  SetMsyncFails(false);
  alpheus_region_free(region);
  EXPECT_OK(alpheus_region_open(path, &region, &last_error));
  EXPECT(memcmp(alpheus_region_data(region), "kept", 4) == 0);
  alpheus_region_free(region);
  EXPECT_INVALID(alpheus_region_open_anonymous(0, &region, &last_error));
}

static void ReliableBytesAreReadWholeOrNotAtAll(void) {
  alpheus_region* region = NULL;
  char buffer[16] = "";
  size_t size = 0;
  EXPECT_OK(alpheus_region_open_anonymous(8192, &region, &last_error));
  EXPECT(alpheus_reliable_bytes(5) > 5);
  EXPECT(alpheus_reliable_bytes(SIZE_MAX) == 0);
  EXPECT_OK(alpheus_reliable_write(region, 64, 7, "hello", 5, &last_error));
  EXPECT_OK(
      alpheus_reliable_read(region, 64, 7, buffer, 16, &size, &last_error));
  EXPECT(size == 5 && memcmp(buffer, "hello", 5) == 0);
  EXPECT_CODE(
      ALPHEUS_RESOURCE_EXHAUSTED,
      alpheus_reliable_read(region, 64, 7, buffer, 4, &size, &last_error));
  EXPECT(size == 5);
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_reliable_read(region, 64, 8, buffer,
                                                       16, &size, &last_error));
  EXPECT_CODE(
      ALPHEUS_OUT_OF_RANGE,
      alpheus_reliable_read(region, 8190, 7, buffer, 16, &size, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_reliable_write(region, 8190, 7, "hello", 5, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_reliable_write(region, 0, 7, "x", SIZE_MAX, &last_error));
  EXPECT_INVALID(alpheus_reliable_write(region, 0, 7, NULL, 1, &last_error));
  EXPECT_OK(alpheus_reliable_write(region, 64, 7, NULL, 0, &last_error));
  EXPECT_OK(alpheus_reliable_read(region, 64, 7, NULL, 0, &size, &last_error));
  EXPECT(size == 0);
  alpheus_region_free(region);
}

static void AtomicValueIsReplaced(void) {
  alpheus_region* region = NULL;
  const alpheus_place place = {4096, 100, 3};
  const alpheus_place odd = {100, 100, 3};
  const alpheus_place outside = {1 << 20, 100, 3};
  char buffer[100] = "";
  size_t size = 0;
  EXPECT(alpheus_atomic_bytes(100) == 8192);
  EXPECT(alpheus_atomic_bytes(SIZE_MAX) == 0);
  EXPECT_OK(alpheus_region_open_anonymous(1 << 16, &region, &last_error));
  EXPECT_CODE(ALPHEUS_NOT_FOUND, alpheus_atomic_read(region, &place, buffer,
                                                     100, &size, &last_error));
  EXPECT_OK(alpheus_atomic_write(region, &place, "old", 3, &last_error));
  EXPECT_OK(alpheus_atomic_write(region, &place, "newer", 5, &last_error));
  EXPECT_OK(
      alpheus_atomic_read(region, &place, buffer, 100, &size, &last_error));
  EXPECT(size == 5 && memcmp(buffer, "newer", 5) == 0);
  EXPECT_CODE(
      ALPHEUS_RESOURCE_EXHAUSTED,
      alpheus_atomic_read(region, &place, buffer, 4, &size, &last_error));
  EXPECT_INVALID(alpheus_atomic_write(region, &odd, "x", 1, &last_error));
  EXPECT_CODE(ALPHEUS_OUT_OF_RANGE,
              alpheus_atomic_write(region, &outside, "x", 1, &last_error));
  EXPECT_INVALID(
      alpheus_atomic_write(region, &place, buffer, 101, &last_error));
  memset((char*)alpheus_region_data(region) + 4096, 1, 8192);
  EXPECT_CODE(ALPHEUS_DATA_LOSS, alpheus_atomic_read(region, &place, buffer,
                                                     100, &size, &last_error));
  alpheus_region_free(region);
}

const Case kRegionCases[] = {
    CASE(RegionKeepsWhatIsPersisted),
    CASE(ReliableBytesAreReadWholeOrNotAtAll),
    CASE(AtomicValueIsReplaced),
    {NULL, NULL},
};
