//! Why a provider gave no answer.

use std::{borrow::Cow, error::Error, io, iter};

use hyper_util::client::legacy;
use rustls::CertificateError;

use super::proxy::ProxyError;

/// What is said of an answer whose end cannot be known.
pub(super) const UNCLEAR_LENGTH: &str =
    "the upstream sent lengths of its answer that differ, or are no numbers";

/// Whether a user should be told: their client does not show what lies between it and the provider.
pub(super) fn is_told(reason: &str) -> bool {
    reason.starts_with("the certificate") || reason.starts_with("the proxy")
}

/// Why there is no answer, as it is recorded.
pub(super) fn unanswered(error: &legacy::Error) -> Cow<'static, str> {
    let chain = || iter::successors(error.source(), |error| (*error).source());
    if let Some(refused) = chain().find_map(certificate) {
        let why = match refused {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has expired",
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "it is not valid yet"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "it is for another host"
            }
            // Another authority of the same name leads to a signature that is wrong.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => {
                "nobody signed it whom this system trusts; SSL_CERT_FILE names a file of those who \
                 sign"
            }
            CertificateError::Revoked => "it was revoked",
            _ => "it is not valid",
        };
        return format!("the certificate of the upstream is refused: {why}").into();
    }
    if let Some(proxy) = chain().find_map(|error| error.downcast_ref::<ProxyError>()) {
        return proxy.to_string().into();
    }
    // Its words alone tell.
    let is_unclear = chain().any(|error| error.to_string() == "invalid content-length parsed");
    if error.is_connect() {
        "the upstream cannot be reached".into()
    } else if is_unclear {
        UNCLEAR_LENGTH.into()
    } else {
        "the upstream gave no answer of HTTP".into()
    }
}

/// The certificate that an error is about. An error of input and output hides the one within it from
/// those who ask for its source.
fn certificate<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e CertificateError> {
    if let Some(within) = error.downcast_ref::<io::Error>() {
        return certificate(within.get_ref()?);
    }
    match error.downcast_ref::<rustls::Error>()? {
        rustls::Error::InvalidCertificate(refused) => Some(refused),
        _ => None,
    }
}
