//! An object cut open where the filling goes, so that a large one is text from the start.

use serde_json::{Map, Value, json};

use crate::fill::Frame;
use crate::input::{Input, Spread};
use crate::shape::{Place, Step, below, schema_at};
use crate::words::{EQUAL, UNIQUE, sample};

/// Stands where the filling goes; no base has such a text.
const HERE: &str = "@fill@";
/// Stands in a parent's name for its number.
const NUMBER: &str = "@number@";

/// The object around the filling.
pub(crate) struct Outline {
    ends: (String, String),
    /// An element of the list above the place, cut open in the same way.
    parent: Option<(String, String)>,
    /// The element that the list had before.
    template: Option<Value>,
}

impl Outline {
    /// Cuts an object open.
    pub(crate) fn new(
        mut object: Value,
        schema: &Value,
        place: &Place,
        frame: Frame,
        spread: Spread,
    ) -> Self {
        let list = place.steps.iter().rposition(|step| *step == Step::Item);
        if let (Spread::Many(_), Some(list)) = (spread, list) {
            return Self::of_many(object, schema, place, frame, list);
        }
        let template = put(&mut object, &place.steps, schema, frame);
        Self { ends: ends(&object, frame), parent: None, template }
    }

    /// With the filling in each element of the list at this step.
    fn of_many(mut object: Value, schema: &Value, place: &Place, frame: Frame, list: usize) -> Self {
        let (above, inside) = place.steps.split_at(list);
        let inside = inside.get(1..).unwrap_or_default();
        let sibling = put(&mut object, above, schema, Frame::Element);
        let items = &schema_at(schema, above)["items"];
        let mut parent = sibling.unwrap_or_else(|| sample(items, false, EQUAL, 0));
        for name in ["name", "key", "mountPath"] {
            if let Some(Value::String(text)) = parent.get_mut(name) {
                text.push_str(NUMBER);
            }
        }
        let template = put(&mut parent, inside, items, frame);
        Self { ends: ends(&object, Frame::Element), parent: Some(ends(&parent, frame)), template }
    }

    /// The object with the filling, of about so many bytes.
    pub(crate) fn filled(&self, input: &Input<'_>, bytes: usize, first: usize) -> String {
        let (start, end) = &self.ends;
        let mut text = String::with_capacity(bytes + 4096);
        text.push_str(start);
        let limit = bytes.saturating_sub(end.len());
        let parts = Parts::new(input, self.template.as_ref());
        let frame = input.fill.frame();
        match (&self.parent, input.spread) {
            (Some((before, after)), Spread::Many(count)) => {
                let each = if frame == Frame::Whole { 1 } else { count };
                fill_up(&mut text, limit, Frame::Element, |number, _| {
                    let number = first + number;
                    let inner = (0..each).map(|inner| parts.part(number * each + inner, count * 20));
                    let inner = inner.collect::<Vec<_>>().join(",");
                    let name = |text: &str| text.replace(NUMBER, &number.to_string());
                    format!("{}{inner}{}", name(before), name(after))
                });
            }
            _ => fill_up(&mut text, limit, frame, |number, room| parts.part(first + number, room)),
        }
        text + end
    }
}

/// The number in the models of [`Parts`], and of how many there are: elements differ in more than their
/// numbers, but not without end.
const MODEL: usize = 7_777_700;
const MODELS: usize = 12;

/// The parts of a filling. Most are copies of a few models in which only the number is another one.
struct Parts<'i> {
    input: &'i Input<'i>,
    template: Option<&'i Value>,
    models: Vec<(String, String)>,
}

impl<'i> Parts<'i> {
    fn new(input: &'i Input<'i>, template: Option<&'i Value>) -> Self {
        let mut parts = Self { input, template, models: Vec::new() };
        if input.fill.is_counted() {
            let model = |number: usize| (parts.whole(number, 0), number.to_string());
            parts.models = (MODEL..MODEL + MODELS).map(model).collect();
        }
        parts
    }

    fn part(&self, number: usize, room: usize) -> String {
        match self.models.get(number % MODELS) {
            Some((model, mark)) => model.replace(mark, &number.to_string()),
            None => self.whole(number, room),
        }
    }

    fn whole(&self, number: usize, room: usize) -> String {
        self.input.fill.part(number, room, &self.input.place.schema, self.template)
    }
}

fn fill_up(text: &mut String, limit: usize, frame: Frame, mut part: impl FnMut(usize, usize) -> String) {
    if frame == Frame::Whole {
        let room = limit.saturating_sub(text.len());
        text.push_str(&part(0, room));
        return;
    }
    for number in 0.. {
        let next = part(number, 0);
        if number > 0 {
            if text.len() + next.len() >= limit {
                break;
            }
            text.push(',');
        }
        text.push_str(&next);
    }
}

/// Makes room at the place, with all that leads there, and gives an element that the list had.
fn put(object: &mut Value, steps: &[Step], schema: &Value, frame: Frame) -> Option<Value> {
    let place = reach(object, steps, schema);
    match (frame, place) {
        (Frame::Element, Value::Array(items)) => {
            let template = items.first().cloned();
            items.push(json!(HERE));
            return template;
        }
        (Frame::Member, Value::Object(fields)) => {
            fields.insert(HERE.to_owned(), json!(0));
        }
        (Frame::Element, place) => *place = json!([HERE]),
        (Frame::Member, place) => *place = Value::Object(Map::from_iter([(HERE.to_owned(), json!(0))])),
        (Frame::Whole, place) => *place = json!(HERE),
    }
    None
}

/// The value at the place; what is missing on the way is added.
fn reach<'v>(mut value: &'v mut Value, steps: &[Step], mut schema: &Value) -> &'v mut Value {
    for step in steps {
        schema = below(schema, step);
        let new = sample(schema, false, UNIQUE, 1);
        value = match step {
            Step::Field(name) => field(value, name, new),
            Step::Entry => {
                let key = value.as_object().and_then(|fields| fields.keys().next().cloned());
                field(value, &key.unwrap_or_else(|| "k".to_owned()), new)
            }
            Step::Item => {
                if value.as_array().is_none_or(Vec::is_empty) {
                    *value = json!([new]);
                }
                &mut value[0]
            }
        };
    }
    value
}

fn field<'v>(value: &'v mut Value, name: &str, new: Value) -> &'v mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    let field = &mut value[name];
    if field.is_null() {
        *field = new;
    }
    field
}

/// The text before and after the filling.
fn ends(value: &Value, frame: Frame) -> (String, String) {
    let text = value.to_string();
    let mark = if frame == Frame::Member { format!("\"{HERE}\":0") } else { format!("\"{HERE}\"") };
    let (before, after) = text.split_once(&mark).unwrap_or((&text, ""));
    (before.to_owned(), after.to_owned())
}
