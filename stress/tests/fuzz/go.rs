//! The same texts and the same patches through the libraries of a kube-apiserver: memgate must decide
//! on a text as on what the apiserver reads in it, and patches must do there what they do here. So must it
//! take the URLs that Go's clients take, and see each object that kubectl sees in a file.
//!
//! `tools/compare` is the program on the other side.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{BufRead, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use libtest_mimic::{Failed, Trial};
use memgate_core::admission::{self, Malformed};
use memgate_core::decide::decide;
use memgate_core::patch::Patch;
use memgate_core::patch::apply::apply;
use memgate_manifest::{document::values, source::Source};
use memgate_model::decision::Decision;
use memgate_model::finding::Severity;
use memgate_model::reason::Reason;
use memgate_model::snapshot::Snapshot;
use memgate_platforms::url::Endpoint;
use memgate_workbench::files::casefile::{self, Case};
use proptest::{prelude::Rng, test_runner::TestRunner};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::{
    spelling,
    support::{cases, needs::needs, tools},
};

/// How many times each case's object is written in another way.
const REWRITES_PER_OBJECT: usize = 3;

/// How many URLs are compared.
const URLS: usize = 20_000;

/// How many texts of manifests are put together at random.
const MANIFESTS: usize = 40_000;

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, run: fn(&mut Go) -> Result<()>| {
        let trial = Trial::test(format!("go::{name}"), move || {
            Go::start().and_then(|mut go| run(&mut go)).map_err(|error| Failed::from(format!("{error:#}")))
        });
        needs("Go", trial)
    };
    vec![
        trial("reads_odd_texts_alike", reads_odd_texts_alike),
        trial("reads_repeated_and_escaped_keys_alike", reads_repeated_keys_alike),
        trial("reads_odd_values_alike", reads_odd_values_alike),
        trial("reads_pods_as_typed", reads_pods_as_typed),
        trial("reads_reviews_as_typed", reads_reviews_as_typed),
        trial("applies_patches_alike", applies_patches_alike),
        trial("takes_the_same_urls", takes_the_same_urls),
        trial("hides_no_manifest_from_itself", hides_no_manifest_from_itself),
    ]
}

/// The program on the other side; it ends with its input.
struct Go {
    _child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

#[derive(Deserialize)]
struct Answer {
    value: Option<Box<RawValue>>,
    error: Option<String>,
}

impl Go {
    fn start() -> Result<Self> {
        let mut child =
            Command::new(tools::compare()?).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("no input")?;
        let output = BufReader::new(child.stdout.take().context("no output")?);
        Ok(Self { _child: child, input, output })
    }

    /// What Go reads in a text, as text again; an error when Go refuses it.
    fn read(&mut self, text: &[u8]) -> Result<Result<String, String>> {
        self.ask(&json!({"text": BASE64_STANDARD.encode(text)}))
    }

    /// The same of a Pod, whose fields its type has.
    fn pod(&mut self, text: &[u8]) -> Result<Result<String, String>> {
        self.ask(&json!({"pod": BASE64_STANDARD.encode(text)}))
    }

    /// The same of an AdmissionReview.
    fn review(&mut self, text: &[u8]) -> Result<Result<String, String>> {
        self.ask(&json!({"review": BASE64_STANDARD.encode(text)}))
    }

    fn patched(&mut self, text: &str, patch: &str) -> Result<Result<String, String>> {
        self.ask(&json!({"text": BASE64_STANDARD.encode(text), "patch": BASE64_STANDARD.encode(patch)}))
    }

    /// The scheme, host and port that Go reads in a URL; an error when Go refuses it.
    fn parsed_url(&mut self, text: &str) -> Result<Result<String, String>> {
        self.ask(&json!({"url": BASE64_STANDARD.encode(text)}))
    }

    /// The objects that kubectl would send of a file, up to the first that it cannot read.
    fn manifests(&mut self, text: &str) -> Result<Vec<Value>> {
        let read = self.ask(&json!({"manifests": BASE64_STANDARD.encode(text)}))?;
        Ok(serde_json::from_str(&read.map_err(anyhow::Error::msg)?)?)
    }

    fn ask(&mut self, task: &Value) -> Result<Result<String, String>> {
        writeln!(self.input, "{task}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let answer: Answer = serde_json::from_str(&line).with_context(|| format!("Go says {line:?}"))?;
        let null = || "null".to_owned();
        Ok(match answer.error {
            Some(error) => Err(error),
            None => Ok(answer.value.map_or_else(null, |value| value.get().to_owned())),
        })
    }
}

/// Pods written as no apiserver would send them, and whether memgate refuses to read them.
fn reads_odd_texts_alike(go: &mut Go) -> Result<()> {
    let scene = scene()?;
    let pod = scene.object.to_string();
    let inside = |text: &str| pod.replacen('{', &format!("{{{text},"), 1);
    let deep = |depth: usize| inside(&format!(r#""x":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
    let unusual: [(&str, Vec<u8>, bool); 19] = [
        ("as it is", pod.clone().into(), false),
        ("a field twice", inside(r#""metadata":{"name":"other"}"#).into(), true),
        ("an unknown key twice", inside(r#""x":1,"x":[2]"#).into(), false),
        ("a key in other case", inside(r#""Metadata":{"labels":{}},"SPEC":null"#).into(), false),
        ("an escaped key", pod.replacen(r#""metadata""#, r#""\u006detadata""#, 1).into(), false),
        ("a null member", inside(r#""status":null"#).into(), false),
        ("depth 126", deep(126).into(), false),
        ("depth 127", deep(127).into(), false),
        ("depth 128", deep(128).into(), false),
        ("depth 129", deep(129).into(), false),
        ("depth 9,000", deep(9_000).into(), false),
        ("NUL in a string", inside(r#""x":"\u0000""#).into(), false),
        ("a huge integer", inside(r#""x":123456789012345678901234567890"#).into(), false),
        ("a lone surrogate elsewhere", inside(r#""x":"\ud800""#).into(), false),
        ("no UTF-8", [inside(r#""x":""#).as_bytes(), b"\xff\"}"].concat(), true),
        ("a byte order mark", format!("\u{feff}{pod}").into(), true),
        ("a comma too many", inside(r#""x":[1,]"#).into(), true),
        ("a comment", inside("/* x */ \"x\":1").into(), true),
        ("nothing", Vec::new(), true),
    ];
    for (name, text, refused) in unusual {
        let read = go.read(&text)?;
        let ours = decide_on(&scene, &text)?;
        ensure!(ours.is_none() == refused, "{name}: memgate says {ours:?}, Go {read:?}");
        if let (Ok(read), Some(ours)) = (&read, &ours) {
            same(name, ours, &decide_on(&scene, read.as_bytes())?.context("Go's text is refused")?)?;
        }
        ensure!(read.is_ok() || refused, "{name}: Go refuses ({read:?}) what memgate reads");
    }
    Ok(())
}

/// The objects of all cases, with keys that are repeated (the other value first, or last) and written
/// with escapes.
fn reads_repeated_keys_alike(go: &mut Go) -> Result<()> {
    let mut runner = TestRunner::deterministic();
    let mut compared = 0;
    for (file, case) in cases::cases()? {
        let Some(object) = case.object.clone() else { continue };
        let Ok(snapshot) = casefile::request::state(&case) else { continue };
        let scene = Scene { snapshot, case, object };
        let plain = decide_on(&scene, scene.object.to_string().as_bytes())?;
        if plain.is_none_or(|decision| decision.reason == Reason::Malformed) {
            // Go's typed readers would refuse it as well, whatever stands there twice.
            continue;
        }
        for _ in 0..REWRITES_PER_OBJECT {
            let mut text = String::new();
            put(&scene.object, &scene.object, runner.rng(), &mut text);
            let name = format!("{file}: {}: {text}", scene.case.name);
            let Ok(read) = go.read(text.as_bytes())? else { continue };
            let ours = decide_on(&scene, text.as_bytes())?;
            if ours.is_none() && scene.object["kind"] == "Pod" {
                // Of a repeated field of a type, Go counts both values.
                continue;
            }
            let mut ours = ours.with_context(|| name.clone())?;
            let mut theirs = decide_on(&scene, read.as_bytes())?.with_context(|| name.clone())?;
            // A field that no version has is reported where it is written, also in a value that a later one replaces.
            for decision in [&mut ours, &mut theirs] {
                decision.findings.retain(|finding| !finding.code.name.ends_with("/unknown-field"));
            }
            same(&name, &ours, &theirs)?;
            compared += 1;
        }
    }
    ensure!(compared > 1_000, "only {compared} texts were compared");
    Ok(())
}

/// The objects of all cases that Go reads without a type, with odd numbers, texts and nesting in place of each value in turn.
/// Half a surrogate, which no apiserver writes, is refused where a decision reads it, and not here.
fn reads_odd_values_alike(go: &mut Go) -> Result<()> {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let odd = [
        "3600.0", "36e2", "0.36E+4", "-0", "-0.0", "1e-7", "9007199254740993", "9007199254740993.0",
        "9223372036854775807", "9223372036854775808", "18446744073709551616", "1e19", "1E400", "-1e999",
        "3600.00000000000000000001", "00", "1.", ".5", "+1", "0x10", "NaN", "\"\\ud83d\\ude00\"",
        "\"\\u0000\"", "\"\\x41\"", "\"\u{fffd}\"", "\"\u{7f}\u{2028}\"", "null", "{}", "[null]",
    ];
    let mut odd: Vec<Vec<u8>> = odd.map(|text| text.as_bytes().to_vec()).to_vec();
    odd.extend([b"\"\xff\"".to_vec(), b"\"\xed\xa0\x80\"".to_vec(), b"\"\xc0\x80\"".to_vec()]);
    odd.extend([126, 127, 128, 9_900, 10_001].map(|depth| deep(depth).into_bytes()));
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut refused) = (0, 0);
    for (file, case) in cases::cases()? {
        if file.starts_with("policy/") {
            // Policies compare some numbers as they are written, and an apiserver writes whole ones without an exponent.
            continue;
        }
        let Some(object) = case.object.clone().filter(|object| object["kind"] != "Pod") else { continue };
        let Ok(mut snapshot) = casefile::request::state(&case) else { continue };
        // As in a cluster, where an apiserver has compared the object with its schema.
        snapshot.crds = None;
        let scene = Scene { snapshot, case, object };
        for pointer in crate::pointers::all_pointers(&scene.object) {
            let mut whole = scene.object.clone();
            let Some(place) =
                whole.pointer_mut(&pointer).filter(|_| !["", "/kind", "/apiVersion"].contains(&&*pointer))
            else {
                continue;
            };
            *place = json!(PLACEHOLDER);
            let whole = whole.to_string();
            let (before, behind) = whole.split_once(&json!(PLACEHOLDER).to_string()).context("a place")?;
            let value = &odd[runner.rng().next_u32() as usize % odd.len()];
            let text = [before.as_bytes(), value, behind.as_bytes()].concat();
            let name = format!("{file}: {}: {pointer}: {}", scene.case.name, String::from_utf8_lossy(value));
            // What is refused is read by nobody in another way.
            let Some(ours) = decide_on(&scene, &text)? else { continue };
            let read = go.read(&text)?;
            // Of a number out of range, and of what nests deeper than Go reads, no apiserver writes a review.
            let Ok(read) = read else {
                let never = ["1E400", "-1e999"].iter().any(|never| value == never.as_bytes());
                ensure!(never || value.len() > 20_000, "{name}: Go refuses {read:?} what memgate reads");
                continue;
            };
            let theirs = decide_on(&scene, read.as_bytes())?.with_context(|| name.clone())?;
            if theirs.allowed() && !ours.allowed() {
                // Such as a number with a point in a policy, which an apiserver writes without.
                refused += 1;
                continue;
            }
            ensure!(
                verdict(&ours) == verdict(&theirs),
                "{name}\n{:?}\n{:?}",
                verdict(&ours),
                verdict(&theirs)
            );
            compared += 1;
        }
    }
    ensure!(compared > 5_000 && refused < 50, "{compared} texts were compared, {refused} refused");
    Ok(())
}

/// What stands for a value that is put in later.
const PLACEHOLDER: &str = "the place";

/// The pods of all cases, with keys that are repeated and written with escapes: memgate refuses one, or it decides as on the
/// Pod that Go reads.
fn reads_pods_as_typed(go: &mut Go) -> Result<()> {
    let mut runner = TestRunner::deterministic();
    let (mut compared, mut refused) = (0, 0);
    for (file, case) in cases::cases()? {
        let Some(object) = case.object.clone().filter(|object| object["kind"] == "Pod") else { continue };
        let Ok(snapshot) = casefile::request::state(&case) else { continue };
        let scene = Scene { snapshot, case, object };
        let plain = scene.object.to_string();
        let Ok(typed) = go.pod(plain.as_bytes())? else { continue };
        let of_plain = decide_on(&scene, plain.as_bytes())?.context("a decision")?;
        let of_typed = decide_on(&scene, typed.as_bytes())?.context("a decision")?;
        if verdict(&of_plain) != verdict(&of_typed) {
            // Go leaves out what its type does not have, and writes what is empty in another way.
            continue;
        }
        for _ in 0..3 * REWRITES_PER_OBJECT {
            let mut text = String::new();
            put(&scene.object, &scene.object, runner.rng(), &mut text);
            let name = format!("{file}: {}: {text}", scene.case.name);
            let Some(ours) = decide_on(&scene, text.as_bytes())? else {
                refused += 1;
                continue;
            };
            let Ok(typed) = go.pod(text.as_bytes())? else { continue };
            let untyped = go.read(text.as_bytes())?.map_err(anyhow::Error::msg)?;
            if go.pod(untyped.as_bytes())?.as_deref() != Ok(&*typed) {
                // A field twice in a part that few decisions read, and no apiserver writes.
                continue;
            }
            let theirs = decide_on(&scene, typed.as_bytes())?.with_context(|| name.clone())?;
            ensure!(
                verdict(&ours) == verdict(&theirs),
                "{name}\n{:?}\n{:?}",
                verdict(&ours),
                verdict(&theirs)
            );
            compared += 1;
        }
    }
    ensure!(compared > 100 && refused > 100, "{compared} pods were compared, {refused} refused");
    Ok(())
}

/// The reason and the findings, wherever they are: Go sorts keys.
fn verdict(decision: &Decision) -> (Reason, Vec<(&'static str, Severity)>) {
    let mut codes: Vec<_> = decision.findings.iter().map(|it| (it.code.name, it.severity)).collect();
    codes.sort_unstable();
    (decision.reason, codes)
}

/// Envelopes as no apiserver writes them: memgate refuses one, or it reads what Go reads.
fn reads_reviews_as_typed(go: &mut Go) -> Result<()> {
    const PLAIN: &str = r#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u-1","kind":{"group":"","version":"v1","kind":"Pod"},"resource":{"group":"","version":"v1","resource":"pods"},"name":"p","namespace":"team","operation":"CREATE","userInfo":{"username":"ann","groups":["g"]},"object":{"metadata":{"name":"p"}},"oldObject":null,"dryRun":true,"options":null}}"#;
    const KEYS: [&str; 13] = [
        "kind", "apiVersion", "request", "uid", "name", "namespace", "operation", "userInfo", "object",
        "oldObject", "dryRun", "subResource", "group",
    ];
    const VALUES: [&str; 14] = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "\"other\"",
        "\"DELETE\"",
        "\"status\"",
        "true",
        "false",
        "5",
        "{\"uid\":\"u-2\"}",
        "{\"group\":\"g\",\"kind\":\"Query\"}",
        "{\"username\":\"bob\"}",
        "\"\u{fffd}\"",
    ];
    let mut texts = vec![PLAIN.to_owned(), spelling::odd(&serde_json::from_str(PLAIN)?)];
    for key in KEYS {
        let upper = key.to_uppercase();
        let title = format!("{}{}", &key[..1].to_uppercase(), &key[1..]);
        for (key, value) in [key, &upper, &title].iter().flat_map(|key| VALUES.map(|value| (*key, value))) {
            for written in [format!("\"{key}\""), spelling::escaped(key)] {
                // At each place where a member may stand.
                for (at, _) in PLAIN.match_indices([',', '{']) {
                    let (before, behind) = PLAIN.split_at(at + 1);
                    texts.push(format!("{before}{written}:{value},{behind}"));
                }
                for (at, _) in PLAIN.match_indices('}') {
                    let (before, behind) = PLAIN.split_at(at);
                    texts.push(format!("{before},{written}:{value}{behind}"));
                }
            }
        }
    }
    let mut compared = 0;
    for text in &texts {
        let Ok(ours) = admission::parse(text) else { continue };
        // What Go does not read, no apiserver writes.
        let Ok(theirs) = go.review(text.as_bytes())? else { continue };
        let theirs: Value = serde_json::from_str(&theirs)?;
        let theirs = &theirs["request"];
        let text_of = |field: &Value| json!(field.as_str().unwrap_or_default());
        let request = &ours.request;
        // One that is not read is nobody.
        let user = request.occasion.user().name;
        let user = if user.is_empty() { text_of(&theirs["userInfo"]["username"]) } else { json!(user) };
        let object = |text: Option<&str>| text.map_or(Ok(Value::Null), serde_json::from_str);
        let read = json!({
            "uid": ours.uid, "dryRun": ours.dry_run, "name": request.name, "namespace": request.namespace,
            "subResource": request.subresource, "operation": request.operation.name(),
            "group": request.group, "version": request.version, "kind": request.kind,
            "user": user,
            "object": object(request.object)?, "oldObject": object(request.old_object)?,
        });
        let expected = json!({
            "uid": theirs["uid"], "dryRun": theirs["dryRun"] == true, "name": text_of(&theirs["name"]),
            "namespace": text_of(&theirs["namespace"]), "subResource": text_of(&theirs["subResource"]),
            "operation": theirs["operation"], "group": theirs["kind"]["group"],
            "version": theirs["kind"]["version"], "kind": theirs["kind"]["kind"],
            "user": text_of(&theirs["userInfo"]["username"]),
            "object": theirs["object"], "oldObject": theirs["oldObject"],
        });
        ensure!(read == expected, "{text}\nours   {read}\ntheirs {expected}");
        compared += 1;
    }
    ensure!(compared > 1_000, "only {compared} of {} reviews were compared", texts.len());
    Ok(())
}

/// The patches of all cases.
fn applies_patches_alike(go: &mut Go) -> Result<()> {
    let mut applied = 0;
    for (file, case) in cases::cases()? {
        let (Ok(snapshot), Some(object)) = (casefile::request::state(&case), &case.object) else { continue };
        let review = casefile::request::review(&case).to_string();
        let Ok(review) = admission::parse(&review) else { continue };
        let edits = decide(&review.request, &snapshot).edits;
        if edits.is_empty() {
            continue;
        }
        let text = object.to_string();
        let ours = apply(&text, &edits).with_context(|| format!("{file}: {}", case.name))?;
        let theirs = go.patched(&text, &serde_json::to_string(&Patch(&edits))?)?;
        let theirs = theirs.map_err(anyhow::Error::msg).with_context(|| format!("{file}: {}", case.name))?;
        let ours = go.read(ours.as_bytes())?.map_err(anyhow::Error::msg)?;
        ensure!(ours == theirs, "{file}: {}: ours {ours}\ntheirs {theirs}", case.name);
        applied += 1;
    }
    ensure!(applied > 200, "only {applied} patches were applied");
    Ok(())
}

/// Addresses of memory services put together from good and bad parts, and with a character more.
fn takes_the_same_urls(go: &mut Go) -> Result<()> {
    const SCHEMES: [&str; 4] = ["http://", "HTTPS://", "http:", "ftp://"];
    const USERINFO: [&str; 8] = ["", "@", "u@", "u:p@", "u:p@q@", "u%40:%2f@", "u%@", "u v@"];
    const HOSTS: [&str; 26] = [
        "h", "", "a.b", "10.0.0.1", "a_b", "a%2Db", "a%25b", "b%C3%BC", "b\u{fc}", "a%", "a b", "a\\b",
        "{a}", "a]", "a[b]", "[::1]", "[]", "[a]", "[10.0.0.1]", "[::ffff:10.0.0.1]",
        "[::ffff:10.0.0.1%25a]", "[fe80::1%25eth0]", "[fe80::1%eth0]", "[fe80::1%25]", "[::1]]", "fd00::1",
    ];
    const PORTS: [&str; 10] = ["", ":", ":80", ":0080", ":0", ":65535", ":65536", ":http", ":80:80", ":-1"];
    const RESTS: [&str; 12] =
        ["", "/", "?", "#", "/a b", "/a%20b", "/a%2", "/%zz", "/?%", "/#%", "/#%23", "\\a"];
    const MORE: &str = "%/?#@:[]\\ \"'<>{}^`|+2aF\u{fc}\n\u{7f}";
    let mut runner = TestRunner::deterministic();
    let mut random_below = |limit: usize| runner.rng().next_u32() as usize % limit;
    let mut taken = 0;
    for _ in 0..URLS {
        let parts: [&[&str]; 5] = [&SCHEMES, &USERINFO, &HOSTS, &PORTS, &RESTS];
        let mut url: String = parts.iter().map(|parts| parts[random_below(parts.len())]).collect();
        if random_below(2) == 0 {
            let places: Vec<usize> = url.char_indices().map(|(place, _)| place).collect();
            let more = MORE.chars().nth(random_below(MORE.chars().count())).context("a character")?;
            url.insert(places[random_below(places.len())], more);
        }
        let ours = Endpoint::for_go(&url).is_some();
        let theirs = go.parsed_url(&url)?;
        // Go lets control characters pass in a fragment; memgate nowhere.
        let usable = theirs.as_ref().is_ok_and(|read| is_usable(read)) && !url.contains(char::is_control);
        ensure!(ours == usable, "{url:?}: {ours}, Go {theirs:?}");
        taken += usize::from(ours);
    }
    ensure!((URLS / 50..URLS / 2).contains(&taken), "{taken} of {URLS} URLs were taken");
    Ok(())
}

/// Texts with every character that some reader takes for a line end, a blank or a mark, and texts put together at random:
/// either memgate refuses one, or it sees each object that kubectl sees, as kubectl sees it.
#[allow(clippy::too_many_lines, reason = "a table")]
fn hides_no_manifest_from_itself(go: &mut Go) -> Result<()> {
    const CHARACTERS: &str = "\0\t\n\u{b}\u{c}\r #\u{7f}\u{85}\u{a0}\u{1680}\u{200b}\u{2003}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}\u{ffff}";
    const PLACES: [&str; 36] = [
        "a: 1\n# x@b: 2\nc: 3\n", "a: 1\n# x@b: 2@...@#\nb: 3\n", "a: 1\n# x@---@b: 2\n", "a: x@y\nc: 3\n",
        "a: x@b: 2\n", "a: x @ y\n", "a: x#@y\n", "a: \"x @ y\"\nb: 1\n", "a: 'x @ y'\nb: 1\n",
        "a: |\n  x@  y\nc: 3\n", "a: >\n  x@  y@b: 2\n", "a: |-@\n  x\nb: 1\n", "a@b: 1\n", "\"a@b\": 1\n",
        "'a@': 1\n", "? a@: 1\n", "@a: 1\nb: 2\n", "a: 1\n@b: 2\n", "a:\n  b: 1\n@c: 2\n",
        "a: {b: 1,@c: 2}\n", "a: &x@ 1\nb: *x\n", "@{a: 1}\n", "@{\"a\":1}\n", "{\"a\":1}@{\"b\":2}\n",
        "{\"a@\": \"x@y\"}\n", "{\"a\": 1}@#\n---\nb: 2\n", "a: 1\n---@b: 2\n", "a: 1\n---@\nb: 2\n",
        "a: 1\n--- @\n{\"b\":2}\n", "a: 1\n---\n@b: 2\n", "a: 1\n---@#\n{\"b\":2}\n", "|\n---@\na: 1\n",
        "|\n---@#x\na: 1\n", "a: 1\n...@b: 2\n", "\u{feff}@a: 1\n", "%YAML 1.1@---\na: 1\n",
    ];
    const PIECES: [&str; 48] = [
        "a", "b: ", "c: ", "\nd: 1\n", "\ne: 2\n", "- ", "  ", " \n", "\n", "\n  ", "\n- ", "{", "}", "[",
        "]", ",", ": ", "? ", "&a ", "*a", "<<: ", "!!str ", "|\n", ">-\n", "\"", "'", "\"x\"", "{\"a\": 1}",
        "#c", " #c\n", "\n# y\n", "\t", "\r", "\r\n", "0x1", "~", "x\n", "---", "--- ", "\n---\n", "...",
        "\n...\n", "%YAML 1.1\n", "\u{feff}", "\u{85}", "\u{2028}", "\u{a0}", "\u{3000}",
    ];
    let mut texts = BTreeSet::new();
    for place in PLACES {
        for character in CHARACTERS.chars().map(String::from) {
            for instead in
                [character.clone(), character.repeat(2), format!("\n{character}"), format!("{character}\n")]
            {
                texts.insert(place.replace('@', &instead));
                texts.insert(place.replace('\n', "\r\n").replace('@', &instead));
            }
        }
    }
    let mut runner = TestRunner::deterministic();
    let mut random_below = |limit: usize| runner.rng().next_u32() as usize % limit;
    for _ in 0..MANIFESTS {
        let count = 1 + random_below(14);
        texts.insert((0..count).map(|_| PIECES[random_below(PIECES.len())]).collect());
    }
    let mut compared = 0;
    for text in texts {
        let mut errors = Vec::new();
        let documents = values(&Arc::new(Source::new("a.yaml", text.as_str())), &mut errors);
        if !errors.is_empty() {
            continue;
        }
        let theirs = go.manifests(&text)?;
        let missing =
            theirs.iter().find(|object| !documents.iter().any(|document| document.value() == *object));
        ensure!(missing.is_none(), "{text:?}: kubectl sends {missing:?}, memgate reads {documents:?}");
        compared += usize::from(!theirs.is_empty());
    }
    ensure!(compared > 1_000, "only {compared} texts were compared");
    Ok(())
}

/// Whether what Go has read leads anywhere.
fn is_usable(read: &str) -> bool {
    let Ok([scheme, host, port]) = serde_json::from_str::<[String; 3]>(read) else { return false };
    let port = port.is_empty() || port.parse::<u16>().is_ok_and(|port| port > 0);
    matches!(scheme.as_str(), "http" | "https") && !host.is_empty() && port
}

/// A case whose object is written in other ways.
struct Scene {
    snapshot: Snapshot,
    case: Case,
    object: Value,
}

/// A pod that gets something injected.
fn scene() -> Result<Scene> {
    for (_, case) in cases::cases()? {
        let Some(object) = case.object.clone().filter(|object| object["kind"] == "Pod") else { continue };
        let snapshot = casefile::request::state(&case)?;
        let scene = Scene { snapshot, case, object };
        let decision = decide_on(&scene, scene.object.to_string().as_bytes())?;
        if decision.is_some_and(|decision| decision.reason == Reason::Injected) {
            return Ok(scene);
        }
    }
    anyhow::bail!("no case injects anything")
}

/// The decision on a scene whose object is this text; `None` when it is refused as unreadable.
fn decide_on(scene: &Scene, text: &[u8]) -> Result<Option<Decision>> {
    const PLACEHOLDER: &str = r#""the object""#;
    let Ok(text) = str::from_utf8(text) else { return Ok(None) };
    let mut review = casefile::request::review(&scene.case);
    review["request"]["object"] = json!("the object");
    let body = review.to_string();
    ensure!(body.matches(PLACEHOLDER).count() == 1, "the placeholder does not stand alone");
    let body = body.replacen(PLACEHOLDER, text, 1);
    match admission::parse(&body) {
        Ok(review) => {
            let decision = decide(&review.request, &scene.snapshot);
            Ok(Some(decision).filter(|decision| decision.reason != Reason::Unreadable))
        }
        Err(Malformed::NotJson { .. } | Malformed::Missing("object")) => Ok(None),
        Err(other) => Err(other.into()),
    }
}

/// That two decisions say the same, in any order: Go sorts the keys of what it writes.
fn same(name: &str, ours: &Decision, theirs: &Decision) -> Result<()> {
    let summary = |decision: &Decision| {
        let findings = decision.findings.iter();
        let mut lines: Vec<String> = findings
            .map(|finding| format!("{} {} {}", finding.code.name, finding.pointer, finding.severity.name()))
            .collect();
        lines.extend(decision.edits.iter().map(|edit| {
            // A position in a list of keys that were sorted is none of the edit's own.
            format!("{} {} {:?}", edit.op.name(), edit.pointer, edit.value)
        }));
        lines.sort();
        (decision.reason, lines)
    };
    let (ours, theirs) = (summary(ours), summary(theirs));
    ensure!(ours == theirs, "{name}\nours   {ours:?}\ntheirs {theirs:?}");
    Ok(())
}

/// Writes a value with some of its keys twice, the other value before or behind, and some escaped.
fn put(value: &Value, whole: &Value, rng: &mut impl Rng, out: &mut String) {
    match value {
        Value::Object(members) => {
            out.push('{');
            for (number, (key, member)) in members.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                let mut one_in = |n: u32| rng.next_u32().is_multiple_of(n);
                let (before, behind, escaped) = (one_in(8), one_in(40), one_in(8));
                let key =
                    if escaped { spelling::escaped(key) } else { Value::from(key.as_str()).to_string() };
                if before {
                    let _infallible = write!(out, "{key}:{},", other(member, whole, rng.next_u32()));
                }
                out.push_str(&key);
                out.push(':');
                put(member, whole, rng, out);
                if behind {
                    let _infallible = write!(out, ",{key}:{}", other(member, whole, rng.next_u32()));
                }
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    out.push(',');
                }
                put(item, whole, rng, out);
            }
            out.push(']');
        }
        leaf => out.push_str(&leaf.to_string()),
    }
}

/// Another value of the same type: of any other, Go's typed readers would refuse the whole object.
fn other(member: &Value, whole: &Value, random: u32) -> String {
    match member {
        Value::Object(_) => return "{}".to_owned(),
        Value::Array(_) => return "[]".to_owned(),
        _ => {}
    }
    let same_type = |value: &&Value| std::mem::discriminant(*value) == std::mem::discriminant(member);
    let all = crate::pointers::all_pointers(whole);
    let alike: Vec<&Value> =
        all.iter().filter_map(|pointer| whole.pointer(pointer)).filter(same_type).collect();
    alike[random as usize % alike.len()].to_string()
}
