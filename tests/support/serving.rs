//! A `memgate serve` for one test, and the lines of its log.

#![allow(dead_code, reason = "each test program uses the part of it that it needs")]

use std::io::{BufRead, BufReader, Lines};
use std::net::SocketAddr;
use std::process::{Child, ChildStderr, Command, Stdio};

use serde_json::Value;

/// The arguments of a program that serves for one test.
pub(crate) const OPTIONS: [&str; 6] =
    ["--listen", "127.0.0.1:0", "--health", "127.0.0.1:0", "--log-format", "json"];

/// A program that serves, until this is dropped.
pub(crate) struct Serving {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    /// What it has logged, as far as a test has waited for it. A line that is not JSON is a string.
    pub(crate) log: Vec<Value>,
}

impl Serving {
    /// Starts a command that ends in `serve` and [`OPTIONS`], and waits until it serves.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut serving = Self { child, lines, log: Vec::new() };
        serving.wait_for("serving");
        serving
    }

    /// Waits for a line of the log with this message.
    pub(crate) fn wait_for(&mut self, message: &str) -> &Value {
        while self.log.last().is_none_or(|line| line["message"] != message) {
            let line = self.lines.next();
            let line = line.unwrap_or_else(|| panic!("the program has ended: {:#?}", self.log)).unwrap();
            self.log.push(serde_json::from_str(&line).unwrap_or(Value::String(line)));
        }
        self.log.last().unwrap()
    }

    /// The address of its port for the `webhook` or for `health`.
    pub(crate) fn address(&self, port: &str) -> SocketAddr {
        let line = self.log.iter().find(|line| line["message"] == "serving").unwrap();
        line[port].as_str().unwrap().parse().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}
