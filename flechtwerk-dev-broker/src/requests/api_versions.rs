//! ApiVersions: what the broker speaks.

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};

use super::{Context, Outcome, Serve};
use crate::ErrorCode;
use crate::wire::Api;

impl Serve for ApiVersionsRequest {
    type Answer = ApiVersionsResponse;

    fn refuse(&self, _version: i16, error: ErrorCode) -> ApiVersionsResponse {
        ApiVersionsResponse::default().with_error_code(error.code())
    }

    async fn serve(self, context: &Context) -> Outcome<ApiVersionsResponse> {
        let bad = |text: &str| {
            // Kafka's own rule for the names that clients give themselves.
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
            !text.starts_with(|c: char| c.is_ascii_alphanumeric()) || !text.chars().all(legal)
        };
        if context.version() >= 3 && (bad(&self.client_software_name) || bad(&self.client_software_version)) {
            return Outcome::Answer(self.refuse(context.version(), ErrorCode::INVALID_REQUEST));
        }
        let keys = Api::ALL.iter().map(|api| {
            let (min, max) = api.versions();
            ApiVersion::default().with_api_key(api.key()).with_min_version(min).with_max_version(max)
        });
        // No features are finalized: transactions are those before version 2, groups are classic.
        Outcome::Answer(
            ApiVersionsResponse::default().with_api_keys(keys.collect()).with_finalized_features_epoch(0),
        )
    }
}

/// The answer to an ApiVersions of a version that is not known: that of version 0, with the versions there are.
pub(super) fn unknown_version(correlation_id: i32) -> Bytes {
    let (min, max) = Api::ApiVersions.versions();
    let mut frame = BytesMut::new();
    frame.put_i32(16);
    frame.put_i32(correlation_id);
    frame.put_i16(ErrorCode::UNSUPPORTED_VERSION.code());
    frame.put_i32(1);
    frame.put_i16(Api::ApiVersions.key());
    frame.put_i16(min);
    frame.put_i16(max);
    frame.freeze()
}
