// SPDX-License-Identifier: Apache-2.0
#include "api/grpc/server/reflection.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <set>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "api/grpc/calls/shown_token.h"
#include "api/grpc/server/reflection.pb.h"
#include "api/grpc/wire/call_error.h"

namespace alpheus::rpc {
namespace {

using google::protobuf::FileDescriptor;
using reflection::Answer;
using reflection::Question;

// Adds a file behind those that it imports.
void AddFile(const FileDescriptor& file, std::set<std::string>* added,
             Answer::Files* files) {
  if (!added->insert(file.name()).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) {
    AddFile(*file.dependency(i), added, files);
  }
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  files->add_file(proto.SerializeAsString());
}

void SetFile(const FileDescriptor* file, const std::string& name,
             Answer* answer) {
  if (file == nullptr) {
    answer->mutable_error()->set_code(grpc::StatusCode::NOT_FOUND);
    answer->mutable_error()->set_message(absl::StrCat(name, ": not declared"));
    return;
  }
  std::set<std::string> added;
  AddFile(*file, &added, answer->mutable_files());
}

Answer AnswerTo(const Question& question,
                const std::vector<std::string>& services) {
  Answer answer;
  answer.set_valid_host(question.host());
  *answer.mutable_original() = question;
  const auto* const pool = google::protobuf::DescriptorPool::generated_pool();
  switch (question.kind_case()) {
    case Question::kListServices:
      for (const std::string& service : services) {
        answer.mutable_services()->add_service()->set_name(service);
      }
      break;
    case Question::kFileByFilename:
      SetFile(pool->FindFileByName(question.file_by_filename()),
              question.file_by_filename(), &answer);
      break;
    case Question::kFileContainingSymbol:
      SetFile(pool->FindFileContainingSymbol(question.file_containing_symbol()),
              question.file_containing_symbol(), &answer);
      break;
    default:  // extensions, which proto3 lacks
      answer.mutable_error()->set_code(grpc::StatusCode::UNIMPLEMENTED);
      answer.mutable_error()->set_message("no such question is answered");
  }
  return answer;
}

// Reads a question, answers it, and so on: one message at a time.
class ReflectionStream final : public grpc::ServerGenericBidiReactor {
 public:
  explicit ReflectionStream(const std::vector<std::string>& services)
      : services_(services) {
    StartRead(&message_);
  }

 private:
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    Question question;
    grpc::Slice bytes;
    if (!message_.DumpToSingleSlice(&bytes).ok() ||
        !question.ParseFromArray(bytes.begin(),
                                 static_cast<int>(bytes.size()))) {
      return Finish({grpc::StatusCode::INVALID_ARGUMENT, "no question"});
    }
    const grpc::Slice answer(AnswerTo(question, services_).SerializeAsString());
    answer_ = grpc::ByteBuffer(&answer, 1);
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

  const std::vector<std::string>& services_;
  grpc::ByteBuffer message_;
  grpc::ByteBuffer answer_;
};

class Refusal final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Refusal(const grpc::Status& why) { Finish(why); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerGenericBidiReactor* Reflection::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  for (const char* version : {"v1", "v1alpha"}) {
    if (context->method() ==
        absl::StrCat("/grpc.reflection.", version,
                     ".ServerReflection/ServerReflectionInfo")) {
      const absl::Status may = access_.CheckKnown(ShownIn(*context, access_));
      if (!may.ok()) return new Refusal(NotAllowed(may).ToStatus());
      return new ReflectionStream(services_);
    }
  }
  return new Refusal(
      {grpc::StatusCode::UNIMPLEMENTED,
       absl::StrCat(context->method(), ": there is no such method")});
}

}  // namespace alpheus::rpc
