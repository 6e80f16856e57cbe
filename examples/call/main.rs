//! curl for a signed, retried call: what happens is told on stderr while it happens, the body goes to stdout, and the exit code
//! says what a script can do.
//!
//! `cargo run --example call -- --fake POST https://orders.example/prod/orders '{"sku":"A-7"}'` runs against the embedded
//! gateway, which fails twice before it answers; without `--fake` it is a real call with credentials of the AWS chain:
//!
//! ```sh
//! cargo run --example call -- POST https://abc123.execute-api.eu-central-1.amazonaws.com/prod/orders @order.json \
//!     --key order-4711 -H tenant:t-1
//! ```
// ci-args: --fake POST https://orders.example/prod/orders {"sku":"A-7"} -H tenant:t-1 --key order-4711
#![allow(clippy::print_stdout, clippy::print_stderr)]

pub(crate) mod args;
pub(crate) mod exit;
mod fake;
pub(crate) mod progress;

use args::Args;
use eastwest::{Call, CallContext, Error, ServiceClient};
use exit::Exit;
use progress::Progress;
use std::io::{self, Read, Write};
use std::process::ExitCode;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let args = match Args::parse(std::env::args_os()) {
        Ok(args) => args,
        Err(told) => {
            // Help that was asked for goes to stdout, a complaint to stderr.
            let _ = told.print();
            return if told.use_stderr() { Exit::Usage.into() } else { ExitCode::SUCCESS };
        }
    };
    run(&args, &mut io::stdout(), Progress::new(args.quiet)).await.into()
}

/// Makes the call; says how it ended.
pub(crate) async fn run(args: &Args, out: &mut impl Write, progress: Progress) -> Exit {
    let body = match body(args.body.as_deref()) {
        Ok(body) => body,
        Err(error) => {
            progress.say(&format!("the body cannot be read: {error}"));
            return Exit::Usage;
        }
    };
    let sent = match send(args, body, progress.clone()).await {
        Ok(sent) => sent,
        Err(error) => {
            progress.say(&format!("the embedded gateway has no port: {error}"));
            return Exit::Failed;
        }
    };
    match sent {
        Ok(body) => match out.write_all(&body).and_then(|()| out.flush()) {
            Ok(()) => Exit::Success,
            Err(error) => {
                progress.say(&format!("the answer came, and could not be written: {error}"));
                Exit::Failed
            }
        },
        Err(error) => {
            progress.failed(&error);
            // What the callee says of a failure is its answer too.
            let _ = out.write_all(error.body());
            Exit::of(&error)
        }
    }
}

async fn send(args: &Args, body: Vec<u8>, progress: Progress) -> io::Result<Result<Vec<u8>, Error>> {
    let fake = if args.fake { Some(fake::Fake::start(args).await?) } else { None };
    let client = match &fake {
        Some(fake) => fake.client(args, progress),
        None => real(args, progress).await,
    };
    Ok(match client {
        Ok(client) => answer(&client, args, body).await,
        Err(error) => Err(error),
    })
}

/// Region and credentials as the AWS CLI finds them.
async fn real(args: &Args, progress: Progress) -> Result<ServiceClient, Error> {
    let config = eastwest::load_aws_config_with(|loader| match &args.aws_profile {
        Some(name) => loader.profile_name(name),
        None => loader,
    });
    let mut builder = ServiceClient::from_aws_config(&args.origin, &config.await).observer(progress);
    if let Some(region) = &args.region {
        builder = builder.region(region);
    }
    args.settings(builder).build()
}

async fn answer(client: &ServiceClient, args: &Args, body: Vec<u8>) -> Result<Vec<u8>, Error> {
    let call = client.request(&CallContext::root(), args.method.clone(), &args.path).body(body);
    let call = args.query.iter().fold(call, |call, (name, value)| call.query(name, value));
    let call = args.headers.iter().fold(call, |call, (name, value)| call.header(name, value));
    let call = match &args.key {
        Some(key) => call.idempotency_key(key),
        None if args.no_key => call.no_idempotency_key(),
        None => call,
    };
    Ok(json_by_default(call, args).send().await?.into_body().to_vec())
}

/// A body that looks like JSON is sent as JSON, unless a header says otherwise.
fn json_by_default(call: Call, args: &Args) -> Call {
    let typed = args.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    if args.body.is_some() && !typed { call.header("content-type", "application/json") } else { call }
}

/// The text itself, `@file`, or `-` for stdin.
fn body(given: Option<&str>) -> io::Result<Vec<u8>> {
    match given {
        None => Ok(Vec::new()),
        Some("-") => {
            let mut body = Vec::new();
            io::stdin().read_to_end(&mut body)?;
            Ok(body)
        }
        Some(text) => match text.strip_prefix('@') {
            Some(path) => std::fs::read(path),
            None => Ok(text.as_bytes().to_vec()),
        },
    }
}
