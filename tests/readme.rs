//! Documents show the real output of memgate, their pictures are drawn from it, and their links lead to an existing
//! file and heading.
//!
//! A fenced `console` block whose first line starts with `$` is a command and its standard output;
//! a line `…` stands for any number of lines. `BLESS=1 cargo test --test readme` draws the pictures anew.

#![allow(clippy::expect_used, reason = "a test stops where something is wrong")]

#[path = "support/shown.rs"]
mod shown;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anstyle_svg::{Term, WIN10_CONSOLE};
use shown::fits;

/// Each picture of a terminal, and the command whose output it is.
const PICTURES: &[(&str, &str)] = &[
    ("docs/pictures/diff.svg", "memgate mutate --diff examples/arkonis/pod.yaml --with examples/arkonis/"),
    ("docs/pictures/denial.svg", "memgate check docs/tour/memory.yaml"),
];

/// The width of a picture, in characters: what a page of a repository shows without scaling it down much.
/// Longer lines are cut off, as a pager does.
const COLUMNS: usize = 110;

/// How anstyle-svg draws dimmed text, and how it is drawn here. An opacity of 0.4 has too little contrast, and some programs
/// ignore it in a part of a text.
const DIMMED: (&str, &str) = (".dimmed { opacity: 0.4; }", ".dimmed { fill: #929292 }");

/// The contrast between text and its background that WCAG 2 asks for at level AA.
const CONTRAST: f64 = 4.5;

#[test]
fn documents_show_what_memgate_prints() {
    let mut commands = 0;
    for (path, text) in documents() {
        for block in text.split("```console\n$ ").skip(1) {
            let block = block.split("\n```").next().expect("an end");
            let (command, shown) = block.split_once('\n').expect("output");
            let needs_cluster =
                ["kubectl ", "jq ", "memgate explain-pod "].iter().any(|program| command.contains(program));
            if needs_cluster || shown.contains("\n$ kubectl ") {
                // tests/operate runs what needs a cluster or its audit log.
                continue;
            }
            let printed = run(command, "never");
            assert!(
                fits(&shown.lines().collect::<Vec<_>>(), &printed.lines().collect::<Vec<_>>()),
                "{}: {command} prints\n{printed}",
                path.display()
            );
            commands += 1;
        }
    }
    assert!(commands > 0, "no example");
}

#[test]
fn pictures_are_of_what_memgate_prints() {
    for (path, command) in PICTURES {
        let output = run(command, "always");
        let lines = output.trim_end().lines().map(|line| cut(line, COLUMNS));
        let shown: Vec<String> = std::iter::once(format!("$ {command}")).chain(lines).collect();
        let picture = Term::new().palette(WIN10_CONSOLE).render_svg(&shown.join("\n"));
        let picture = picture.replace(DIMMED.0, DIMMED.1);
        let path = root().join(path);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&path, &picture).expect("the picture can be written");
        }
        let drawn = fs::read_to_string(&path).unwrap_or_default();
        assert!(drawn == picture, "{} is out of date; draw it anew with `just pictures`", path.display());
    }
}

#[test]
fn drawn_texts_can_be_read() {
    let charts = fs::read_dir(root().join("stress/pictures")).expect("a folder");
    let charts = charts.map(|entry| entry.expect("an entry").path());
    for path in PICTURES.iter().map(|(path, _)| root().join(path)).chain(charts) {
        let picture = fs::read_to_string(&path).expect("a picture");
        let colours = colours_of_texts(&picture);
        assert!(!colours.is_empty(), "{} has no text", path.display());
        for (text, background) in colours {
            let contrast = contrast(text, background);
            assert!(contrast >= CONTRAST, "{}: {text:?} on {background:?} has {contrast:.2}", path.display());
        }
    }
}

#[test]
fn links_lead_somewhere() {
    for (path, text) in documents() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, at)| (file, Some(at)));
            let folder = path.parent().expect("a folder");
            let target = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(target.exists(), "{}: {link} leads nowhere", path.display());
            if let Some(anchor) = anchor {
                let text = fs::read_to_string(&target).expect("a document");
                assert!(anchors(&text).contains(anchor), "{}: {link} leads nowhere", path.display());
            }
        }
    }
}

/// No image is published yet, so what is installed names one that the reader has built.
#[test]
fn installing_names_an_image() {
    for (path, text) in documents() {
        let pipes = text.lines().filter(|line| line.contains("kubectl apply -f -"));
        for line in pipes.filter(|line| line.trim_start().starts_with("memgate manifests")) {
            let named = ["--image ", "--only ", "--url "].iter().any(|flag| line.contains(flag));
            assert!(named, "{}: {line}", path.display());
        }
        assert!(!text.contains("apply -k deploy/kustomize/default"), "{}", path.display());
    }
}

/// Nothing is published yet, and a copy of the repository has an owner of its own. `tests/documents` looks for addresses.
#[test]
fn no_action_of_a_made_up_owner_is_used() {
    for (path, text) in documents() {
        assert!(!text.contains("uses: memgate/"), "{}", path.display());
    }
}

/// The one command of "Run it" shows an object that is checked, one that is defaulted, and one that is patched.
#[test]
fn the_first_command_shows_the_main_job() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README");
    let (_, section) = readme.split_once("\n## Run it\n").expect("the section");
    let (section, _) = section.split_once("\n## ").expect("an end");
    let commands: Vec<&str> = section.lines().filter_map(|line| line.strip_prefix("$ ")).collect();
    let [command] = commands.try_into().expect("one command");
    let output = start(command, "never");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(
        err.contains("warn[arkonis/number-negative]") && err.contains("\n   |                 ^^\n"),
        "{err}"
    );
    assert!(
        out.contains("ttlSeconds: 3600  # ← default") && out.contains("name: AGENT_MEMORY_BACKEND "),
        "{out}"
    );
}

/// The command under "Test it", word by word.
#[test]
fn the_gate_runs_the_test_command() {
    let text = |file: &str| fs::read_to_string(root().join(file)).expect("a file");
    let readme = text("README.md");
    let (_, section) = readme.split_once("## Test it\n\n```sh\n").expect("a command");
    let command = section.lines().next().expect("a command");
    let gate = text(".ci/run");
    assert!(gate.lines().any(|line| line == format!("step test {command}")), "{command}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every document of the repository, except the pages of codes, which `memgate explain` prints.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders =
        ["docs", "docs/adr", "stress", "examples", "deploy/kustomize", "deploy/helm/memgate", ""]
            .map(|folder| root().join(folder))
            .to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("text");
                found.push((path, text));
            }
        }
    }
    found.sort();
    found
}

/// The headings of a document, as a link names them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let letters = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
        heading.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
    };
    headings.map(letters).collect()
}

/// Red, green and blue, each from 0 to 255.
type Colour = [f64; 3];

/// The colours of each text of a picture and of its background. Terminals have classes, charts have attributes.
fn colours_of_texts(picture: &str) -> Vec<(Colour, Colour)> {
    let fill = |name: &str| {
        let style =
            picture.split(&format!(".{name} {{ fill: ")).nth(1).and_then(|rest| rest.split(" }").next());
        colour(style.expect(name))
    };
    let Some((_, first)) = picture.split_once("class=\"") else {
        let (_, background) = picture.split_once("<rect").expect("a background");
        let background = colour(attribute(background, "fill"));
        let texts = picture.split("<text").skip(1).map(|text| {
            let opacity = attribute(text, "opacity").parse().expect("a number");
            (blended(colour(attribute(text, "fill")), background, opacity), background)
        });
        return texts.collect();
    };
    let classes = first.split("class=\"").filter_map(|rest| rest.split('"').next());
    let texts = classes.filter(|names| *names != "bg").map(|names| {
        assert!(!names.contains("bg-"), "a background of its own: {names}");
        assert!(!names.contains("dimmed") || names == "dimmed", "dimmed and coloured: {names}");
        let own = names.split(' ').find(|name| name.starts_with("fg-") || *name == "dimmed");
        (fill(own.unwrap_or("fg")), fill("bg"))
    });
    texts.collect()
}

fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
    let value = element.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
    value.expect(name)
}

fn colour(hex: &str) -> Colour {
    let digits = hex.strip_prefix('#').expect("a colour");
    let part = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
    [0, 2, 4].map(|at| f64::from(part(at).expect("a part of a colour")))
}

/// What is seen of a colour that lets so much of the background through.
fn blended([red, green, blue]: Colour, background: Colour, opacity: f64) -> Colour {
    let [red_below, green_below, blue_below] = background;
    [(red, red_below), (green, green_below), (blue, blue_below)]
        .map(|(part, below)| opacity * part + (1.0 - opacity) * below)
}

/// The contrast ratio of WCAG 2, from 1 to 21.
fn contrast(one: Colour, other: Colour) -> f64 {
    let luminance = |colour: Colour| {
        let [red, green, blue] = colour.map(|part| match part / 255.0 {
            part if part <= 0.04045 => part / 12.92,
            part => ((part + 0.055) / 1.055).powf(2.4),
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    };
    let (one, other) = (luminance(one), luminance(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

/// What a command prints on standard output.
fn run(command: &str, color: &str) -> String {
    String::from_utf8(start(command, color).stdout).expect("text")
}

/// Runs a command of memgate.
fn start(command: &str, color: &str) -> Output {
    let arguments = command.strip_prefix("cargo run -- ").or_else(|| command.strip_prefix("memgate "));
    let arguments = arguments.expect("a command of memgate").split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_memgate"))
        .args(arguments)
        .args(["--color", color])
        .current_dir(root())
        .env_clear()
        .output()
        .expect("memgate starts")
}

/// The line as far as it fits into so many columns. Its escape sequences stay, to the one that ends its colours.
fn cut(line: &str, columns: usize) -> String {
    let mut cut = String::new();
    let (mut escaped, mut column) = (false, 0);
    for letter in line.chars() {
        escaped |= letter == '\u{1b}';
        if !escaped {
            column += 1;
        }
        if escaped || column < columns {
            cut.push(letter);
        } else if column == columns {
            cut.push('…');
        }
        escaped &= letter != 'm';
    }
    cut
}
