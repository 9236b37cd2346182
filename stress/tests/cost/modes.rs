//! The ways to run this: from parameters to what is measured.
//!
//! All that choose inputs have these parameters: `bases`, how many objects of each kind are filled; `one-in`, of
//! how many places one is; `per-place`, in how many ways; `changes`, whether with `all` changes and calls or
//! with `one`; `seed`, for others; `input`, parts of a name that it has to have, with ` + ` between them.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::cluster::Cluster;
use crate::files::{Files, Form};
use crate::input::Input;
use crate::memory::{self, Crowd};
use crate::plan::{self, Choice};
use crate::runs::Parameters;
use crate::scene::{self, REVIEW, Scene};
use crate::search::{self, Search};
use crate::target::Target;
use crate::worst;

/// Sends inputs to a server.
pub(crate) fn search(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?;
    let inputs = with_known(&scene, parameters)?;
    let mut door = Target::start(&program(parameters)?, &scene.manifest())?;
    search::run(&how(parameters)?, &mut door, &inputs)
}

/// Gives them to `memgate check`.
pub(crate) fn files(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?;
    let mut inputs = with_known(&scene, parameters)?;
    inputs.retain(|input| input.base.kind != REVIEW);
    let form = match parameters.text("form")? {
        "json" => Form::Json,
        "flow" => Form::Flow,
        "block" => Form::Block,
        other => bail!("a file is json, flow or block, and no {other}"),
    };
    let mut door = Files::new(&program(parameters)?, &scene.manifest(), form)?;
    search::run(&how(parameters)?, &mut door, &inputs)
}

/// Has them answered on a cluster's state.
pub(crate) fn cluster(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?;
    let inputs = with_known(&scene, parameters)?;
    search::run(&how(parameters)?, &mut Cluster::new(&scene.state)?, &inputs)
}

/// Fills objects of a cluster's state, and sends reviews of the objects that refer to them.
pub(crate) fn state(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?.of_state()?;
    let inputs = chosen(&scene, parameters)?;
    search::run(&how(parameters)?, &mut Cluster::new(&scene.state)?, &inputs)
}

/// Sends the worst by what a search has written, else those of worst.txt, all at once.
pub(crate) fn memory(parameters: &Parameters) -> Result<()> {
    let crowd = Crowd {
        size: parameters.number("size")? as usize,
        callers: parameters.number("callers")? as usize,
        rounds: parameters.number("rounds")? as usize,
        patience: parameters.seconds("seconds")?,
    };
    let names = match parameters.text("from")? {
        "" => worst::known()?,
        file => worst::of_search(&PathBuf::from(file), crowd.callers)?,
    };
    let scene = scene::scene(parameters.number("bases")? as usize, &worst::bases(&names))?;
    let inputs = plan::named(&scene, &names)?;
    memory::run(&crowd, &program(parameters)?, &scene.manifest(), &inputs)
}

/// Prints their names.
pub(crate) fn list(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?;
    chosen(&scene, parameters)?.iter().for_each(|input| println!("{input}"));
    Ok(())
}

/// Writes one of them to a file.
pub(crate) fn dump(parameters: &Parameters) -> Result<()> {
    let scene = scene_of(parameters)?;
    let inputs = chosen(&scene, parameters)?;
    let input = inputs.first().context("there is no such input")?;
    let (size, file) = (parameters.number("size")? as usize, parameters.text("file")?);
    let text = match parameters.text("as")? {
        "review" => input.review(size),
        "object" => input.object(size, 0),
        other => bail!("an input is a review or an object, and no {other}"),
    };
    fs::write(file, text).with_context(|| format!("failed to write {file}"))?;
    println!("{file}: {input}");
    Ok(())
}

fn scene_of(parameters: &Parameters) -> Result<Scene> {
    let wanted: BTreeSet<_> = worst::bases(&worst::known()?);
    scene::scene(parameters.number("bases")? as usize, &wanted)
}

/// The inputs that the parameters choose.
fn chosen<'s>(scene: &'s Scene, parameters: &Parameters) -> Result<Vec<Input<'s>>> {
    let choice = Choice {
        one_in: u64::from(parameters.number("one-in")?.max(1)),
        per_place: parameters.number("per-place")? as usize,
        every_change: match parameters.text("changes")? {
            "all" => true,
            "one" => false,
            other => bail!("changes are all or one, and not {other}"),
        },
        seed: u64::from(parameters.number("seed")?),
        parts: parts(parameters)?,
    };
    let inputs = plan::inputs(scene, &choice);
    ensure!(!inputs.is_empty(), "there is no such input");
    let (bases, state) = (scene.bases.len(), scene.state.len());
    eprintln!("{} inputs from {bases} objects; the state has {state}", inputs.len());
    Ok(inputs)
}

/// The same, and first those of worst.txt, unless certain others are asked for.
fn with_known<'s>(scene: &'s Scene, parameters: &Parameters) -> Result<Vec<Input<'s>>> {
    let known = if parts(parameters)?.is_empty() { worst::known()? } else { Vec::new() };
    let known = plan::named(scene, &known)?;
    Ok(known.into_iter().chain(chosen(scene, parameters)?).collect())
}

fn parts(parameters: &Parameters) -> Result<Vec<String>> {
    let parts = parameters.text("input")?.split(" + ").filter(|part| !part.is_empty());
    Ok(parts.map(str::to_owned).collect())
}

fn how(parameters: &Parameters) -> Result<Search> {
    let sizes = parameters.text("sizes")?.split(',').map(str::parse);
    let middle = parameters.number("middle")?;
    Ok(Search {
        sizes: sizes.collect::<Result<_, _>>().context("a size is a number of bytes")?,
        keep: parameters.number("keep")? as usize,
        time: parameters.seconds("seconds")?,
        stop: f64::from(parameters.number("stop")?),
        fails_at: f64::from(parameters.number("fails-at")?) / 100.0,
        middle: parts(parameters)?.is_empty().then_some(f64::from(middle.max(1)) / 100.0),
        directory: search::directory(),
        name: parameters.text("out")?.to_owned(),
    })
}

/// The program to measure: the static binary of the image unless another one is named.
fn program(parameters: &Parameters) -> Result<PathBuf> {
    let (top, architecture) = (env!("CARGO_MANIFEST_DIR"), std::env::consts::ARCH);
    let own = format!("{top}/../target/static/image/{architecture}-unknown-linux-musl/memgate");
    let program = PathBuf::from(parameters.text_or("program", &own)?);
    ensure!(program.exists(), "{} is not there; run tools/build-static.sh --image", program.display());
    Ok(program)
}
