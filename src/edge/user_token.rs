//! The user's own token, which goes beside the signature and never into it.

use http::HeaderValue;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// A user's token, sent in a header of its own (`x-user-token` unless the client names another).
///
/// It is never signed, logged or kept: `Debug` hides it. The gateway takes `authorization` for the signature alone, so
/// a bearer token there would be refused.
#[derive(Clone, PartialEq, Eq)]
pub struct UserToken(HeaderValue);

impl UserToken {
    /// Takes a token.
    ///
    /// # Errors
    /// [`InvalidUserToken`] unless it is 1 to 8,000 visible ASCII characters; a space may stand between them, as after
    /// `Bearer`.
    pub fn new(token: impl AsRef<str>) -> Result<UserToken, InvalidUserToken> {
        let token = token.as_ref();
        let visible = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        let well_formed = (1..=8_000).contains(&token.len())
            && token.bytes().all(visible)
            && token.trim_matches(' ').len() == token.len();
        let mut value = HeaderValue::from_str(token).ok().filter(|_| well_formed).ok_or(InvalidUserToken)?;
        value.set_sensitive(true);
        Ok(UserToken(value))
    }

    pub(crate) fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl fmt::Debug for UserToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserToken(hidden)")
    }
}

/// A text that no header can carry as a user's token. It does not repeat the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a user token is 1 to 8,000 visible ASCII characters")]
pub struct InvalidUserToken;

/// What a [`UserTokenSource`] promises to give.
pub type UserTokenFuture<'a> =
    Pin<Box<dyn Future<Output = Result<UserToken, Box<dyn Error + Send + Sync>>> + Send + 'a>>;

/// Where a client's calls get the user's token from, unless a call brings its own.
///
/// Asked before every attempt, so it should keep what it has. After a 401 it is asked once more with the token that was
/// refused; if it then gives another one, the call is sent again with what it gives from then on. Its time counts
/// against the call's.
///
/// ```
/// use eastwest::{UserToken, UserTokenFuture, UserTokenSource};
///
/// struct Session(std::sync::Mutex<String>);
///
/// impl UserTokenSource for Session {
///     fn user_token<'a>(&'a self, refused: Option<&'a UserToken>) -> UserTokenFuture<'a> {
///         Box::pin(async move {
///             if refused.is_some() {
///                 // Ask whoever issues the tokens; here, a new one is made up.
///                 *self.0.lock().unwrap() = "second".into();
///             }
///             let token = self.0.lock().unwrap().clone();
///             Ok(UserToken::new(token)?)
///         })
///     }
/// }
/// # let _ = Session(std::sync::Mutex::new("first".into()));
/// ```
pub trait UserTokenSource: Send + Sync {
    /// Gives the token to send; another one than `refused`, if there is any.
    fn user_token<'a>(&'a self, refused: Option<&'a UserToken>) -> UserTokenFuture<'a>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_a_header_can_carry_and_is_never_shown() {
        let token = UserToken::new("Bearer abc.def").unwrap();
        assert!(token.value().is_sensitive());
        assert!(!format!("{token:?}").contains("abc"));
        for bad in ["", " ", "a\n", "a\u{0}", "é", " a", "a ", "a\tb", &"x".repeat(8_001)] {
            assert_eq!(UserToken::new(bad).unwrap_err(), InvalidUserToken, "{bad:?}");
        }
    }
}
