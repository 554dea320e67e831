// SPDX-License-Identifier: Apache-2.0
// method_steps: the sequences of steps in the cells of the taxonomy's tables:
// 10 for singletons (Table 2), 12 for compound updates (Table 3).
//
// Each is named after two things: the operation that carries the bytes, and the
// event that tells the requester that they are persistent. The event is an ack
// of the responder's program, the completion of a FLUSH, or that of the
// operation itself. Where tables and prose disagree, the prose of §3.2 and §3.3
// holds:
//   * Table 2, not DDIO + DRAM-RQWRB, WSP, Send prints "Rsp Send(a)" and "Rq
//     Receive(a)" for the ack.
//   * Table 3, DMP, DDIO, Write prints "Rq Send(ack)" for the second ack.
//   * Table 2 prints "copy(a) + flush(&a)", Table 3 "copy + flush(a,b)": the
//     responder makes a persistent before it writes b (§3.3).
//
// Thread safety: constants.
// References: remote persistence taxonomy, Tables 2 and 3.
#ifndef ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_STEPS_H_
#define ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_STEPS_H_

#include "replication/persist/platform/method.h"

namespace alpheus::replication::steps {

inline constexpr Step kFlush = {StepAction::kRequesterFlush};
inline constexpr Step kFlushed = {StepAction::kRequesterCompleteFlush};
inline constexpr Step kSendAck = {StepAction::kResponderSendAck};
inline constexpr Step kReceiveAck = {StepAction::kRequesterReceiveAck};

inline constexpr Step kWriteA = {StepAction::kRequesterWrite, UpdatePart::kA};
inline constexpr Step kWriteImmediateA = {StepAction::kRequesterWriteImmediate,
                                          UpdatePart::kA};
inline constexpr Step kSendA = {StepAction::kRequesterSend, UpdatePart::kA};
inline constexpr Step kSendAddressA = {StepAction::kRequesterSendAddress,
                                       UpdatePart::kA};
inline constexpr Step kReceiveA = {StepAction::kResponderReceive,
                                   UpdatePart::kA};
inline constexpr Step kReceiveAddressA = {StepAction::kResponderReceiveAddress,
                                          UpdatePart::kA};
inline constexpr Step kFlushA = {StepAction::kResponderFlush, UpdatePart::kA};

inline constexpr Step kWriteB = {StepAction::kRequesterWrite, UpdatePart::kB};
inline constexpr Step kWriteImmediateB = {StepAction::kRequesterWriteImmediate,
                                          UpdatePart::kB};
inline constexpr Step kWriteAtomicB = {StepAction::kRequesterWriteAtomic,
                                       UpdatePart::kB};
inline constexpr Step kSendAddressB = {StepAction::kRequesterSendAddress,
                                       UpdatePart::kB};
inline constexpr Step kReceiveAddressB = {StepAction::kResponderReceiveAddress,
                                          UpdatePart::kB};
inline constexpr Step kFlushB = {StepAction::kResponderFlush, UpdatePart::kB};

inline constexpr Step kSendBoth = {StepAction::kRequesterSend,
                                   UpdatePart::kBoth};
inline constexpr Step kReceiveBoth = {StepAction::kResponderReceive,
                                      UpdatePart::kBoth};

// --- Table 2 ----------------------------------------------------------------

inline constexpr Step kWriteThenAck[] = {
    kWriteA, kSendAddressA, kReceiveAddressA, kFlushA, kSendAck, kReceiveAck};
inline constexpr Step kWriteImmediateThenAck[] = {
    kWriteImmediateA, kReceiveAddressA, kFlushA, kSendAck, kReceiveAck};
inline constexpr Step kSendThenFlushedAck[] = {
    kSendA,
    kReceiveA,
    {StepAction::kResponderCopyAndFlush, UpdatePart::kA},
    kSendAck,
    kReceiveAck};
inline constexpr Step kSendThenAck[] = {
    kSendA,
    kReceiveA,
    {StepAction::kResponderCopy, UpdatePart::kA},
    kSendAck,
    kReceiveAck};

inline constexpr Step kWriteThenFlush[] = {kWriteA, kFlush, kFlushed};
inline constexpr Step kWriteImmediateThenFlush[] = {kWriteImmediateA, kFlush,
                                                    kFlushed};
inline constexpr Step kSendThenFlush[] = {kSendA, kFlush, kFlushed};

inline constexpr Step kWriteCompleted[] = {
    kWriteA, {StepAction::kRequesterCompleteWrite, UpdatePart::kA}};
inline constexpr Step kWriteImmediateCompleted[] = {
    kWriteImmediateA,
    {StepAction::kRequesterCompleteWriteImmediate, UpdatePart::kA}};
inline constexpr Step kSendCompleted[] = {
    kSendA, {StepAction::kRequesterCompleteSend, UpdatePart::kA}};

// --- Table 3 ----------------------------------------------------------------

inline constexpr Step kWritesThenAcks[] = {
    kWriteA, kSendAddressA, kReceiveAddressA, kFlushA, kSendAck, kReceiveAck,
    kWriteB, kSendAddressB, kReceiveAddressB, kFlushB, kSendAck, kReceiveAck};
inline constexpr Step kWriteImmediatesThenAcks[] = {
    kWriteImmediateA, kReceiveAddressA, kFlushA, kSendAck, kReceiveAck,
    kWriteImmediateB, kReceiveAddressB, kFlushB, kSendAck, kReceiveAck};
inline constexpr Step kSendBothThenFlushedAck[] = {
    kSendBoth,
    kReceiveBoth,
    {StepAction::kResponderCopyAndFlush, UpdatePart::kBoth},
    kSendAck,
    kReceiveAck};
inline constexpr Step kSendBothThenAck[] = {
    kSendBoth,
    kReceiveBoth,
    {StepAction::kResponderCopy, UpdatePart::kBoth},
    kSendAck,
    kReceiveAck};

// One round trip: the atomic WRITE doesn't pass the FLUSH.
inline constexpr Step kWriteThenAtomicThenFlush[] = {
    kWriteA, kFlush, kWriteAtomicB, kFlush, kFlushed};
inline constexpr Step kWriteImmediatesThenFlushes[] = {
    kWriteImmediateA, kFlush, kFlushed, kWriteImmediateB, kFlush, kFlushed};
inline constexpr Step kWritesThenFlush[] = {kWriteA, kWriteB, kFlush, kFlushed};
inline constexpr Step kWriteImmediatesThenFlush[] = {
    kWriteImmediateA, kWriteImmediateB, kFlush, kFlushed};
inline constexpr Step kSendBothThenFlush[] = {kSendBoth, kFlush, kFlushed};

inline constexpr Step kWritesCompleted[] = {
    kWriteA, kWriteB, {StepAction::kRequesterCompleteWrite, UpdatePart::kB}};
inline constexpr Step kWriteImmediatesCompleted[] = {
    kWriteImmediateA,
    kWriteImmediateB,
    {StepAction::kRequesterCompleteWriteImmediate, UpdatePart::kB}};
inline constexpr Step kSendBothCompleted[] = {
    kSendBoth, {StepAction::kRequesterCompleteSend, UpdatePart::kBoth}};

// --- In no table ------------------------------------------------------------

// Replaces kWriteThenAtomicThenFlush where an adapter has no atomic WRITE, or b
// is longer: b waits for the first FLUSH (§3.3).
inline constexpr Step kWritesThenFlushes[] = {kWriteA, kFlush, kFlushed,
                                              kWriteB, kFlush, kFlushed};

}  // namespace alpheus::replication::steps

#endif  // ALPHEUS_REPLICATION_PERSIST_PLATFORM_METHOD_STEPS_H_
