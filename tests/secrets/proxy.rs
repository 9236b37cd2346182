//! The way to a cluster: a proxy, several kubeconfigs, an exec plugin. What fails is named, and no error shows the
//! password of a proxy or the arguments and the output of a plugin.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use libtest_mimic::Failed;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::MARKER;

/// What is said when the stand-in of an apiserver was asked, which refuses all requests.
const ANSWER: &str = "you may not get pods";

/// An apiserver that only the proxy knows.
const SERVER: &str = "http://api.cluster.invalid:6443";

/// How a proxy answers.
#[derive(Clone, Copy)]
enum Manner {
    /// By an HTTP tunnel, behind which it is the apiserver.
    Http,
    /// As a SOCKS proxy, behind which it is the apiserver.
    Socks,
    /// It wants a user and a password.
    Refusing,
}

/// A proxy on loopback.
struct Proxy {
    address: String,
    /// Where each connection was to lead.
    asked: Receiver<String>,
}

impl Proxy {
    fn start(manner: Manner) -> Result<Self, Failed> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?.to_string();
        let (sender, asked) = channel();
        // It ends with the process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                thread::spawn(move || sender.send(serve(stream, manner).unwrap_or_default()));
            }
        });
        Ok(Self { address, asked })
    }

    fn is_unused(&self) -> bool {
        self.asked.try_recv().is_err()
    }
}

/// Answers one connection; where it was to lead.
fn serve(stream: TcpStream, manner: Manner) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let target = match manner {
        Manner::Http => {
            let target = head(&mut reader)?;
            stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            target
        }
        Manner::Refusing => {
            let target = head(&mut reader)?;
            stream.write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")?;
            return Ok(target);
        }
        Manner::Socks => {
            // RFC 1928: the methods, of which one is chosen, 255 for none.
            let mut count = [0; 2];
            reader.read_exact(&mut count)?;
            let mut methods = vec![0; usize::from(count[1])];
            reader.read_exact(&mut methods)?;
            if !methods.contains(&0) {
                stream.write_all(&[5, 255])?;
                return Ok(String::new());
            }
            stream.write_all(&[5, 0])?;
            // The request, with the length of the name in its fifth byte.
            let mut start = [0; 4];
            reader.read_exact(&mut start)?;
            let name = counted(&mut reader)?;
            let mut port = [0; 2];
            reader.read_exact(&mut port)?;
            stream.write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])?;
            String::from_utf8_lossy(&name).into_owned()
        }
    };
    head(&mut reader)?;
    let body =
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "code": 403});
    let body = body.to_string();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.write_all((head + &body).as_bytes())?;
    Ok(target)
}

/// A text behind its length.
fn counted(reader: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut length = [0];
    reader.read_exact(&mut length)?;
    let mut text = vec![0; usize::from(length[0])];
    reader.read_exact(&mut text)?;
    Ok(text)
}

/// The first line of a request, of which no part is left unread.
fn head(reader: &mut impl BufRead) -> std::io::Result<String> {
    let (mut first, mut line) = (String::new(), String::new());
    reader.read_line(&mut first)?;
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    Ok(first)
}

/// A kubeconfig in a directory of its own.
struct Kubeconfig(TempDir);

impl Kubeconfig {
    fn write(server: &str, proxy: &str, user: &Value) -> Result<Self, Failed> {
        let directory = tempfile::tempdir()?;
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "one",
            "clusters": [{"name": "one", "cluster": {"server": server, "proxy-url": proxy}}],
            "users": [{"name": "one", "user": user}],
            "contexts": [{"name": "one", "context": {"cluster": "one", "user": "one"}}],
        });
        fs::write(directory.path().join("config"), config.to_string())?;
        Ok(Self(directory))
    }

    fn path(&self) -> String {
        self.0.path().join("config").display().to_string()
    }
}

/// What a command that asks a cluster prints.
fn asks(kubeconfig: &str, variables: &[(&str, &str)]) -> Result<String, Failed> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_memgate"));
    command.args(["explain-pod", "team-a/scout-0"]).env_clear().env("KUBECONFIG", kubeconfig);
    let output = command.envs(variables.iter().copied()).output()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    crate::expect_no_marker("explain-pod", &text)?;
    Ok(text)
}

fn expect(text: &str, parts: &[&str]) -> Result<(), Failed> {
    match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("{part} is not in: {text}").into()),
        None => Ok(()),
    }
}

pub(crate) fn proxies() -> Result<(), Failed> {
    let plain = Kubeconfig::write(SERVER, "", &json!({}))?;
    let http = Proxy::start(Manner::Http)?;
    let address = format!("http://user:{MARKER}@{}", http.address);
    for name in ["HTTPS_PROXY", "https_proxy"] {
        expect(&asks(&plain.path(), &[(name, &address), ("NO_PROXY", "127.0.0.1,.svc,")])?, &[ANSWER])?;
        expect(&http.asked.recv()?, &["CONNECT api.cluster.invalid:6443 "])?;
    }
    let refusing = Proxy::start(Manner::Refusing)?;
    for user in ["", "user:MARKER@"] {
        let address = format!("http://{}{}", user.replace("MARKER", MARKER), refusing.address);
        let parts = ["does not connect to the apiserver: proxy authorization required", &refusing.address];
        let text = asks(&plain.path(), &[("HTTPS_PROXY", &address)])?;
        expect(&text, &[&parts[..], &["(HTTPS_PROXY)"]].concat())?;
        // The kubeconfig's own wins, whatever NO_PROXY says.
        let own = Kubeconfig::write(SERVER, &address, &json!({}))?;
        let text = asks(&own.path(), &[("HTTPS_PROXY", "http://127.0.0.1:1"), ("NO_PROXY", "*")])?;
        expect(&text, &[&parts[..], &["(proxy-url)"]].concat())?;
    }
    let socks = Proxy::start(Manner::Socks)?;
    let own = Kubeconfig::write(SERVER, &format!("socks5://{}", socks.address), &json!({}))?;
    expect(&asks(&own.path(), &[])?, &[ANSWER])?;
    expect(&socks.asked.recv()?, &["api.cluster.invalid"])?;
    let address = format!("socks5://user:{MARKER}@{}", socks.address);
    expect(
        &asks(&plain.path(), &[("HTTPS_PROXY", &address)])?,
        &["HTTPS_PROXY has a user for a SOCKS proxy"],
    )?;

    // A port on which nothing listens.
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let text = asks(&plain.path(), &[("HTTPS_PROXY", &format!("http://user:{MARKER}@{closed}"))])?;
    expect(&text, &["no connection to the proxy", &closed, "connection refused"])?;
    let nearby = Kubeconfig::write(&format!("http://{closed}"), "", &json!({}))?;
    let variables = [("HTTPS_PROXY", &*address), ("NO_PROXY", "10.0.0.0/8, 127.0.0.0/8,")];
    expect(&asks(&nearby.path(), &variables)?, &["no connection", "connection refused"])?;
    if !http.is_unused() {
        return Err("NO_PROXY names the apiserver, and the proxy was asked".into());
    }
    for address in [&*format!("ftp://user:{MARKER}@proxy"), &format!("http://user:{MARKER}@")] {
        let text = asks(&plain.path(), &[("HTTPS_PROXY", address)])?;
        expect(&text, &["HTTPS_PROXY is not the address of a proxy"])?;
    }
    Ok(())
}

pub(crate) fn kubeconfigs() -> Result<(), Failed> {
    let proxy = Proxy::start(Manner::Http)?;
    let there = Kubeconfig::write(SERVER, &format!("http://{}", proxy.address), &json!({}))?;
    let missing = there.0.path().join("missing").display().to_string();
    expect(&asks(&format!("{missing}:{}:{missing}", there.path()), &[])?, &[ANSWER])?;
    let text = asks(&format!("{missing}:{missing}2"), &[])?;
    expect(&text, &[&format!("the kubeconfig {missing} cannot be read (no such file or directory)")])?;
    let damaged = there.0.path().join("damaged").display().to_string();
    fs::write(&damaged, format!("users:\n- name: one\n  user: {{token: {MARKER}, \"a\n"))?;
    expect(&asks(&damaged, &[])?, &["the kubeconfig cannot be used"])
}

pub(crate) fn plugins() -> Result<(), Failed> {
    let user = |command: &str, mode: &str| {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": command, "interactiveMode": mode,
            "args": ["-c", format!("echo {MARKER}; echo 'not logged in' >&2; exit 3")],
            "env": [{"name": "A_TOKEN", "value": MARKER}],
            "installHint": "Install it with: example install get-credentials\n",
        }})
    };
    let missing = Kubeconfig::write(SERVER, "", &user("example-get-credentials", "IfAvailable"))?;
    let parts =
        ["the exec plugin example-get-credentials", "no such file", "example install get-credentials"];
    expect(&asks(&missing.path(), &[])?, &parts)?;
    for mode in ["Never", "IfAvailable"] {
        let failing = Kubeconfig::write(SERVER, "", &user("/bin/sh", mode))?;
        expect(
            &asks(&failing.path(), &[])?,
            &["the exec plugin /bin/sh", "exit status: 3", "not logged in"],
        )?;
    }
    Ok(())
}
