//! That the helper which starts `memgate serve` works, shown on a stand-in for memgate.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    process::ExitCode,
};

use anyhow::{Context, Result, ensure};

use crate::{
    support::webhook::Serve,
    world::{Case, World},
};

/// Set for a copy of this test program that is to be the stand-in.
const SERVES: &str = "MEMGATE_TEST_SERVES";

pub(crate) fn cases() -> Vec<Case> {
    vec![
        Case::new("serving::is_ready_and_ends_on_request", ends_on_request),
        Case::new("serving::starts_again_at_the_same_place", starts_again),
        Case::new("serving::tells_why_it_did_not_start", tells_why),
    ]
}

/// What this program is to do instead of testing, if anything.
pub(crate) fn role() -> Option<fn() -> ExitCode> {
    env::var_os(SERVES).map(|_| stand_in as fn() -> ExitCode)
}

fn ends_on_request(_: &World) -> Result<()> {
    let webhook = stand_in_serve()?.ready()?;
    let (status, body) = webhook.probe("/livez").context("no answer")?;
    ensure!((status, body.as_str()) == (200, "ok"), "{status} {body}");
    ensure!(webhook.ca().starts_with("-----BEGIN CERTIFICATE-----"));
    ensure!(webhook.log().contains("--tls-cert"), "{}", webhook.log());
    let status = webhook.terminate()?;
    ensure!(status.code() == Some(143), "ended with {status}");
    Ok(())
}

fn starts_again(_: &World) -> Result<()> {
    let serve = stand_in_serve()?;
    let first = serve.ready()?;
    let addresses = first.addresses();
    first.terminate()?;
    let second = serve.at(addresses).ready()?;
    ensure!(second.addresses().listen == addresses.listen);
    Ok(())
}

fn tells_why(_: &World) -> Result<()> {
    let started = Serve::new("/bin/sh").ready();
    let error = started.err().context("`sh serve` should not be ready")?;
    let text = error.to_string();
    for part in ["memgate serve ended", "exit status", "serve: "] {
        ensure!(text.contains(part), "{part} is not in: {text}");
    }
    Ok(())
}

fn stand_in_serve() -> Result<Serve> {
    Ok(Serve::new(env::current_exe()?).env(SERVES, "1"))
}

/// Answers every probe with 200 at the address behind `--health`.
fn stand_in() -> ExitCode {
    let args: Vec<String> = env::args().collect();
    println!("{}", args.join(" "));
    let health = args.iter().skip_while(|arg| *arg != "--health").nth(1);
    let listener = TcpListener::bind(health.expect("there is --health")).expect("it is free");
    for stream in listener.incoming().flatten() {
        // A caller that went away is no reason to stop.
        let _ = answer(&stream);
    }
    ExitCode::SUCCESS
}

fn answer(mut stream: &TcpStream) -> Result<()> {
    let lines = BufReader::new(stream).lines();
    lines.take_while(|line| line.as_ref().is_ok_and(|line| !line.is_empty())).for_each(drop);
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    Ok(stream.write_all(answer.as_bytes())?)
}
