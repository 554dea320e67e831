# SPDX-License-Identifier: Apache-2.0
"""v1: messages and stubs that protoc generates from log_service.proto
and admin_service.proto."""
