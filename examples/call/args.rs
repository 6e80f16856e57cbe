//! The command line.

use clap::{Arg, ArgAction, ArgMatches, Command, error::ErrorKind};
use eastwest::{ClientBuilder, Profile};
use http::Method;
use std::ffi::OsString;
use std::time::Duration;

/// What to call, and how.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) method: Method,
    /// Scheme, host and port.
    pub(crate) origin: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) no_key: bool,
    pub(crate) profile: Profile,
    pub(crate) aws_profile: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) quiet: bool,
    pub(crate) fake: bool,
    pub(crate) fails: bool,
}

impl Args {
    pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Args, clap::Error> {
        let matches = command().try_get_matches_from(words)?;
        Args::of(&matches).map_err(|why| command().error(ErrorKind::ValueValidation, why))
    }

    fn of(matches: &ArgMatches) -> Result<Args, String> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let method = text("method").unwrap_or_default().to_ascii_uppercase();
        let url = url::Url::parse(&text("url").unwrap_or_default()).map_err(|why| format!("URL: {why}"))?;
        if url.host_str().is_none() || !url.username().is_empty() || url.fragment().is_some() {
            return Err("URL: it needs a host, and has no user and no fragment".to_owned());
        }
        let origin = url.origin().ascii_serialization();
        let headers = matches.get_many::<String>("header").unwrap_or_default().map(|line| header(line));
        let profile = match text("profile").as_deref() {
            Some("background") => Profile::background(),
            Some("interactive") => Profile::interactive(),
            _ => Profile::standard(),
        };
        Ok(Args {
            method: Method::from_bytes(method.as_bytes()).map_err(|_| format!("{method:?} is no method"))?,
            origin,
            path: url.path().to_owned(),
            query: url.query_pairs().into_owned().collect(),
            headers: headers.collect::<Result<_, _>>()?,
            body: text("body"),
            key: text("key"),
            no_key: matches.get_flag("no-key"),
            profile,
            aws_profile: text("aws-profile"),
            region: text("region"),
            max_attempts: matches.get_one("max-attempts").copied(),
            timeout: matches.get_one("timeout").map(|seconds| Duration::from_secs(*seconds)),
            quiet: matches.get_flag("quiet"),
            fake: matches.get_flag("fake") || matches.get_flag("fake-outage"),
            fails: matches.get_flag("fake-outage"),
        })
    }

    pub(crate) fn settings(&self, mut builder: ClientBuilder) -> ClientBuilder {
        builder = builder.profile(self.profile);
        if let Some(attempts) = self.max_attempts {
            builder = builder.max_attempts(attempts);
        }
        if let Some(timeout) = self.timeout {
            builder = builder.total_timeout(timeout);
        }
        builder
    }
}

fn header(line: &str) -> Result<(String, String), String> {
    let (name, value) = line.split_once(':').ok_or_else(|| format!("{line:?} is not NAME:VALUE"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn command() -> Command {
    let option = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("call")
        .about("Makes one signed call through an API Gateway, retried by what the gateway's answers mean")
        .after_help(
            "Exit codes: 0 there is an answer; 1 failed; 2 not valid, nothing was sent; 10 the callee refuses the request; \
             11 not allowed, not known or not signed well; 12 come back later; 13 it may have been carried out",
        )
        .arg(Arg::new("method").required(true).help("GET, POST, ..."))
        .arg(Arg::new("url").required(true).help("with stage or base path, and a query if there is one"))
        .arg(Arg::new("body").help("the body, @FILE, or - for stdin; JSON unless a header says otherwise"))
        .arg(option("header", "NAME:VALUE", "A header; may be repeated").short('H').action(ArgAction::Append))
        .arg(option("key", "KEY", "The idempotency key; by default a fresh one for an unsafe method").conflicts_with("no-key"))
        .arg(flag("no-key", "Sends no idempotency key: what may have been carried out is then not sent again"))
        .arg(
            option("profile", "NAME", "Times and counts")
                .value_parser(["interactive", "standard", "background"])
                .default_value("standard"),
        )
        .arg(option("aws-profile", "NAME", "The AWS profile for credentials and Region; else as the AWS CLI finds them"))
        .arg(option("region", "REGION", "The Region that the signature names, in place of the configuration's"))
        .arg(option("max-attempts", "N", "How often it is sent in all").value_parser(clap::value_parser!(u32)))
        .arg(option("timeout", "SECONDS", "Bounds the whole call").value_parser(clap::value_parser!(u64)))
        .arg(flag("quiet", "Tells no progress").short('q'))
        .arg(flag("fake", "Calls the embedded gateway, which throttles, times out and then answers"))
        .arg(flag("fake-outage", "Calls the embedded gateway, whose callee is down"))
}
