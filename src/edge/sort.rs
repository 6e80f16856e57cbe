//! What became of a request whose exchange failed, read from the chain of errors beneath it.

use crate::policy::outcome::{Loss, Unsent};
use rustls::{AlertDescription, InvalidMessage};
use std::error::Error;
use std::io::{self, ErrorKind};

/// What became of a request that got no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was written, or may have been.
    Lost(Loss),
    /// It was not written; with one line on why.
    NeverSent(Unsent, String),
}

/// Sorts the failure of a request to `host` before the head of an answer.
pub(crate) fn fate_of_request(error: &reqwest::Error, host: &str) -> Fate {
    // A peer that wants another client certificate says so after the handshake of TLS 1.3, and acts on nothing before.
    if let Some(tls) =
        find::<rustls::Error>(error).filter(|tls| error.is_connect() || blames_our_certificate(tls))
    {
        return if is_setting(tls) {
            let reason = format!("no secure connection to {host} is possible: {tls}");
            Fate::NeverSent(Unsent::Certificate, reason)
        } else {
            let reason = format!("the secure connection to {host} was not established: {tls}");
            Fate::NeverSent(Unsent::HandshakeCut, reason)
        };
    }
    if error.is_connect() {
        return unconnected(error, host);
    }
    if error.is_timeout() {
        return Fate::Lost(Loss::TimedOut);
    }
    #[cfg(feature = "http2")]
    if find::<h2::Error>(error).and_then(h2::Error::reason) == Some(h2::Reason::REFUSED_STREAM) {
        return Fate::NeverSent(Unsent::StreamRefused, format!("{host} refused the stream unprocessed"));
    }
    match find::<hyper::Error>(error) {
        // Handed back by the connection, which had not begun to write it.
        Some(http) if http.is_canceled() => Fate::NeverSent(Unsent::HandshakeCut, cut(host)),
        // hyper has a question for it, and only for servers; a test holds these words.
        Some(http) if http.is_parse() && http.to_string().contains("too large") => {
            Fate::Lost(Loss::HeadTooLarge)
        }
        Some(http) if http.is_parse() => Fate::Lost(Loss::Garbage),
        // What cannot be told apart may have been written.
        Some(_) => Fate::Lost(Loss::Connection),
        None if error.is_builder() => {
            Fate::NeverSent(Unsent::Refused, format!("no request to {host} can be made: {}", last(error)))
        }
        None => Fate::Lost(Loss::Connection),
    }
}

/// Sorts the failure of a body whose head had come.
pub(crate) fn fate_of_body(error: &reqwest::Error) -> Loss {
    if error.is_timeout() {
        return Loss::TimedOut;
    }
    match find::<io::Error>(error).map(io::Error::kind) {
        // A chunk that is none.
        Some(ErrorKind::InvalidData | ErrorKind::InvalidInput) => Loss::Garbage,
        _ => Loss::Truncated,
    }
}

fn unconnected(error: &reqwest::Error, host: &str) -> Fate {
    let (why, reason) = if error.is_timeout() {
        let reason = format!("no connection to {host} within the connect timeout");
        (Unsent::ConnectTimeout, reason)
    } else if error.is_dns() {
        (Unsent::Dns, format!("the name {host} does not resolve: {}", last(error)))
    } else {
        match innermost_io(error).map(io::Error::kind) {
            Some(
                ErrorKind::BrokenPipe
                | ErrorKind::ConnectionAborted
                | ErrorKind::ConnectionReset
                | ErrorKind::UnexpectedEof,
            ) => (Unsent::HandshakeCut, cut(host)),
            None if find::<hyper::Error>(error).is_some() => (Unsent::HandshakeCut, cut(host)),
            _ => (Unsent::Refused, format!("no connection to {host}: {}", last(error))),
        }
    };
    Fate::NeverSent(why, reason)
}

fn cut(host: &str) -> String {
    format!("the connection to {host} was cut before the request was written")
}

/// Whether the same settings will fail the same way each time: a certificate, a version, or a peer that speaks no TLS.
fn is_setting(tls: &rustls::Error) -> bool {
    match tls {
        rustls::Error::InvalidCertificate(_)
        | rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)
        | rustls::Error::NoApplicationProtocol
        | rustls::Error::NoCertificatesPresented
        | rustls::Error::PeerIncompatible(_)
        | rustls::Error::UnsupportedNameType => true,
        rustls::Error::AlertReceived(alert) => {
            blames_our_certificate(tls)
                || matches!(
                    alert,
                    AlertDescription::HandshakeFailure
                        | AlertDescription::InsufficientSecurity
                        | AlertDescription::NoApplicationProtocol
                        | AlertDescription::ProtocolVersion
                        | AlertDescription::UnrecognisedName
                )
        }
        _ => false,
    }
}

fn blames_our_certificate(tls: &rustls::Error) -> bool {
    matches!(
        tls,
        rustls::Error::AlertReceived(
            AlertDescription::AccessDenied
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRequired
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateUnknown
                | AlertDescription::UnknownCA
                | AlertDescription::UnsupportedCertificate
        )
    )
}

fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    chain(error).find_map(|cause| cause.downcast_ref())
}

fn innermost_io<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a io::Error> {
    chain(error).filter_map(|cause| cause.downcast_ref()).last()
}

fn last<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

/// The error and its causes, outermost first.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| cause(*error)).take(DEEPEST)
}

fn cause<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<io::Error>() {
        // Its `source` is that of the error it wraps, which is thereby skipped.
        Some(io) => io.get_ref().map(|inner| inner as _),
        None => error.source(),
    }
}

const DEEPEST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, PeerIncompatible};

    #[test]
    fn a_cause_is_found_beneath_errors_that_hide_it() {
        let hidden = io::Error::new(ErrorKind::InvalidData, rustls::Error::DecryptError);
        let outer = io::Error::other(hidden);
        assert_eq!(find::<rustls::Error>(&outer), Some(&rustls::Error::DecryptError));
        assert_eq!(innermost_io(&outer).unwrap().kind(), ErrorKind::InvalidData);
        assert_eq!(last(&outer).to_string(), rustls::Error::DecryptError.to_string());
    }

    #[test]
    fn what_fails_the_same_way_each_time_is_told_from_an_accident_of_the_line() {
        for setting in [
            rustls::Error::InvalidCertificate(CertificateError::Revoked),
            rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType),
            rustls::Error::PeerIncompatible(PeerIncompatible::NoCipherSuitesInCommon),
            rustls::Error::AlertReceived(AlertDescription::ProtocolVersion),
            rustls::Error::AlertReceived(AlertDescription::HandshakeFailure),
            rustls::Error::AlertReceived(AlertDescription::UnknownCA),
        ] {
            assert!(is_setting(&setting), "{setting:?}");
        }
        for accident in [
            rustls::Error::AlertReceived(AlertDescription::InternalError),
            rustls::Error::AlertReceived(AlertDescription::BadRecordMac),
            rustls::Error::DecryptError,
            rustls::Error::General("busy".to_owned()),
        ] {
            assert!(!is_setting(&accident), "{accident:?}");
        }
    }

    #[test]
    fn only_a_refused_client_certificate_can_end_a_connection_that_was_made_as_unsent() {
        let alert = rustls::Error::AlertReceived;
        assert!(blames_our_certificate(&alert(AlertDescription::CertificateRequired)));
        assert!(!blames_our_certificate(&alert(AlertDescription::HandshakeFailure)));
        assert!(!blames_our_certificate(&rustls::Error::InvalidCertificate(CertificateError::Expired)));
    }
}
