//! Runs a target on what was kept and on damaged seeds, and keeps what goes wrong.

use std::{
    collections::hash_map::DefaultHasher,
    env, fs,
    hash::{Hash, Hasher},
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use libtest_mimic::Failed;
use proptest::{
    prelude::any,
    sample::Index,
    test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner},
};

use crate::damage::{damaged, damages};
use crate::targets::Target;

/// How often a target's seeds are damaged in a normal run: seconds for all targets together.
const ROUNDS: u32 = 1_500;

/// Runs the target on everything that was kept.
pub(crate) fn replay(target: &Target) -> Result<(), Failed> {
    for path in kept(target)? {
        run(target, &fs::read(&path)?).map_err(|wrong| format!("{}: {wrong}", path.display()))?;
    }
    Ok(())
}

/// Runs the target on its seeds, then on damaged ones: so often, or for as long as
/// `MEMGATE_FUZZ_SECONDS` says.
pub(crate) fn fuzz(target: &Target) -> Result<(), Failed> {
    let mut seeds = (target.seeds)();
    if seeds.is_empty() {
        return Err("there are no seeds".into());
    }
    for seed in &seeds {
        run(target, seed).map_err(|wrong| keep(target, seed, &wrong))?;
    }
    for path in kept(target)? {
        seeds.push(fs::read(path)?);
    }
    let Some(time) = env::var("MEMGATE_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()) else {
        // The same damage in every run: a change elsewhere shall not meet a new fault.
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        return batch(target, &seeds, TestRunner::new_with_rng(config(), rng));
    };
    let end = Instant::now() + Duration::from_secs(time);
    let mut rounds = 0;
    while Instant::now() < end {
        batch(target, &seeds, TestRunner::new(config()))?;
        rounds += ROUNDS;
    }
    eprintln!("{}: {rounds} damaged inputs in {time} s", target.name);
    Ok(())
}

fn config() -> Config {
    Config { cases: ROUNDS, failure_persistence: None, ..Config::default() }
}

fn batch(target: &Target, seeds: &[Vec<u8>], mut runner: TestRunner) -> Result<(), Failed> {
    let input = |(seed, damage): &(Index, Vec<_>)| damaged(&seeds[seed.index(seeds.len())], damage, seeds);
    let result = runner.run(&(any::<Index>(), damages()), |choice| {
        run(target, &input(&choice)).map_err(TestCaseError::fail)
    });
    match result {
        Ok(()) => Ok(()),
        Err(TestError::Fail(wrong, choice)) => Err(keep(target, &input(&choice), wrong.message())),
        Err(TestError::Abort(reason)) => Err(reason.message().into()),
    }
}

/// What is wrong with the answer to an input; a panic is.
fn run(target: &Target, input: &[u8]) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| (target.run)(input))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("no message")))
    })
}

fn keep(target: &Target, input: &[u8], wrong: &str) -> Failed {
    let mut hash = DefaultHasher::new();
    input.hash(&mut hash);
    let path = directory(target).join(format!("{:016x}", hash.finish()));
    let kept = fs::create_dir_all(directory(target)).and_then(|()| fs::write(&path, input));
    match kept {
        Ok(()) => format!("{wrong}\nthe input is kept in {}", path.display()).into(),
        Err(error) => format!("{wrong}\nthe input could not be kept: {error}").into(),
    }
}

fn kept(target: &Target) -> Result<Vec<PathBuf>, Failed> {
    let directory = directory(target);
    if !directory.exists() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn directory(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target.name)
}
