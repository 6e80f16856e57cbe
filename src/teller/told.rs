//! What an attempt showed, in words and as a count.

use crate::edge::Shown;
use crate::edge::kept::Kept;
use crate::error::{Answered, Cause};
use crate::policy::classify::Class;
use crate::policy::gateway::{ErrorBody, GatewayError, first_sentence};
use crate::usage::Came;
use bytes::Bytes;

/// What an attempt counts for.
pub(super) fn came(shown: &Shown, class: Option<Class>) -> Came {
    match shown {
        Shown::Answered { .. } if matches!(class, Some(Class::QuotaExhausted | Class::Throttled)) => {
            Came::Throttle
        }
        Shown::Answered { .. } => Came::Answer,
        Shown::Lost { .. } => Came::Doubt,
        Shown::NeverSent { .. } => Came::Nothing,
    }
}

/// What the last attempt showed, in words; what is kept of its answer; and the cause beneath.
pub(super) fn told(kept: Kept, class: Class) -> (String, Option<Answered>, Option<Cause>) {
    match kept {
        Kept::Answered(answer) => {
            let (status, headers, body) = answer.into_parts();
            let gateway_error = GatewayError::read(status, &headers);
            let read = ErrorBody::read(&headers, &body);
            let what = match (class, gateway_error) {
                (Class::RouteMissing, _) => {
                    "403: no such method or path behind this gateway, or the call arrived unsigned".to_owned()
                }
                (Class::BadScope, _) => {
                    "403 bad scope: the gateway expects another `.region(..)` or `.service(..)`".to_owned()
                }
                (_, Some(error)) => format!("{} {class} ({})", status.as_u16(), error.as_str()),
                (_, None) => format!("{} {class}", status.as_u16()),
            };
            let echoes = gateway_error.is_some_and(GatewayError::may_echo_the_request);
            let message = read.message.map(|m| if echoes { first_sentence(&m).to_owned() } else { m });
            let body = if echoes { Bytes::from(message.clone().unwrap_or_default()) } else { body };
            let code = read.code;
            (what, Some(Answered { status, headers, body, gateway_error, code, message }), None)
        }
        Kept::Lost { how, cause } => (format!("{class}: {}", how.as_str()), None, Some(cause)),
        Kept::NeverSent(why) => {
            let (reason, cause) = *why;
            (format!("{class}: {reason}"), None, Some(cause))
        }
    }
}
