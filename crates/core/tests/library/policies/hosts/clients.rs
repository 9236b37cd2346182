//! The host that a client connects to, as each client reads it of a URL. Nothing leaves this machine: curl talks to a
//! proxy of this test, which answers with the host that it is asked for.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// The clients.
pub(super) const ALL: [Client; 5] = [Client::Go, Client::Urllib, Client::Urllib3, Client::Node, Client::Curl];

#[derive(Clone, Copy)]
pub(super) enum Client {
    Go,
    Urllib,
    Urllib3,
    Node,
    Curl,
}

const GO: &str = r#"package main
import ("encoding/json"; "net/url"; "os")
func main() {
    var urls []string
    json.NewDecoder(os.Stdin).Decode(&urls)
    hosts := make([]*string, len(urls))
    for i, text := range urls {
        if u, err := url.Parse(text); err == nil { host := u.Hostname(); hosts[i] = &host }
    }
    json.NewEncoder(os.Stdout).Encode(hosts)
}"#;

const PYTHON: &str = "
import json, sys
def host(url):
    try: return READ
    except Exception: return None
json.dump([host(url) for url in json.load(sys.stdin)], sys.stdout)
";

const NODE: &str = "
const urls = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const host = text => { try { return new URL(text).hostname } catch { return null } };
console.log(JSON.stringify(urls.map(host)));
";

impl Client {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Go => "Go",
            Self::Urllib => "urllib",
            Self::Urllib3 => "urllib3",
            Self::Node => "Node",
            Self::Curl => "curl",
        }
    }

    /// Whether the client connects to URLs with this scheme.
    pub(super) fn knows(self, url: &str) -> bool {
        let scheme = url.split("://").next().unwrap_or_default().to_ascii_lowercase();
        !matches!(self, Self::Curl) || ["http", "https"].contains(&scheme.as_str())
    }

    /// The host of each URL; `None` of one that the client refuses.
    pub(super) fn hosts(self, urls: &[String]) -> Vec<Option<String>> {
        let python = |import: &str, read: &str| {
            let program = format!("import {import}\n{}", PYTHON.replace("READ", read));
            in_json(Command::new("python3").args(["-c", &program]), urls)
        };
        match self {
            Self::Go => {
                let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hosts.go");
                std::fs::write(&file, GO).expect("can be written");
                in_json(Command::new("go").arg("run").arg(&file), urls)
            }
            Self::Urllib => python("urllib.parse", "urllib.parse.urlsplit(url).hostname"),
            Self::Urllib3 => python("urllib3", "urllib3.util.parse_url(url).host"),
            Self::Node => in_json(Command::new("node").args(["-e", NODE]), urls),
            Self::Curl => of_curl(urls),
        }
    }
}

/// Runs a program that reads and writes JSON.
fn in_json(command: &mut Command, urls: &[String]) -> Vec<Option<String>> {
    let input = serde_json::to_string(urls).expect("JSON");
    let output = run(command, &input);
    let hosts: Vec<Option<String>> = serde_json::from_str(&output).expect("a list of hosts");
    assert_eq!(hosts.len(), urls.len());
    hosts
}

fn run(command: &mut Command, input: &str) -> String {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect(&program);
    let mut stdin = child.stdin.take().expect("an input");
    let input = input.to_owned();
    let writer = thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect(&program);
    writer.join().expect("no panic").expect("it reads its input");
    String::from_utf8(output.stdout).expect("text")
}

fn of_curl(urls: &[String]) -> Vec<Option<String>> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let proxy = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(|| answer(stream));
        }
    });
    // A NUL ends the text before curl sees it.
    let escaped = |url: &String| {
        let url = url.replace('\0', "\u{1}").replace("https://", "http://").replace("HTTPS://", "http://");
        let url = url.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r");
        format!("url = \"{url}\"\n")
    };
    let config: String = urls.iter().map(escaped).collect();
    let mut curl = Command::new("curl");
    let options =
        ["-q", "-s", "-g", "--proto", "=http", "--noproxy", "", "-w", "\n", "-x", &proxy, "-K", "-"];
    let output = run(curl.args(options), &config);
    let hosts: Vec<_> =
        output.lines().map(|host| Some(host).filter(|it| !it.is_empty()).map(str::to_owned)).collect();
    assert_eq!(hosts.len(), urls.len());
    hosts
}

/// Answers each request with the host that it is for.
fn answer(mut stream: TcpStream) {
    let Ok(reader) = stream.try_clone() else { return };
    let mut host = String::new();
    for line in BufReader::new(reader).lines().map_while(Result::ok) {
        // The header Host has or lacks the brackets of the request before this one.
        if let Some(name) = line.strip_prefix("GET http://") {
            let name = name.split(['/', '?', ' ']).next().unwrap_or_default();
            let end = name.rfind(']').map_or_else(|| name.find(':').unwrap_or(name.len()), |end| end + 1);
            name[..end].clone_into(&mut host);
        } else if line.is_empty() {
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{host}", host.len());
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}
