//! Rules in CEL as they are evaluated, and their parser.
//!
//! Operators are bound as in CEL. Functions and variables are looked up while a rule is parsed, so that a rule with an
//! unknown one is refused before it is evaluated. How deep a rule nests is bounded, since parsing, evaluating and dropping
//! it recurse.
//! Source: google/cel-spec, `doc/langdef.md`, "Syntax" and "Macros"; google/cel-go, `ext`.

use std::mem;

use regex::Regex;

use crate::cel::lexer::{Token, tokens};
use crate::cel::library::{self, Function, Style};
use crate::scalar;

/// How many bytes a rule may have. An apiserver limits the cost of a rule, of which longer ones leave little.
const MAX_BYTES: usize = 16 << 10;

/// How deep a rule may nest: brackets, and the steps from its root to a leaf.
const MAX_DEPTH: usize = 50;

/// How many bytes a compiled pattern may have.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A rule that can be evaluated.
#[derive(Debug)]
pub(crate) struct Program {
    pub(super) root: Expr,
    /// Whether it reads the stored value.
    pub(super) reads_old: bool,
    /// The fields right below `self` that it reads.
    pub(crate) fields: Vec<String>,
}

/// A part of a rule.
#[derive(Debug)]
pub(super) enum Expr {
    Literal(Literal),
    /// `self` is the first variable, `oldSelf` the second, and those of macros follow.
    Variable(usize),
    Field(Box<Self>, Field, FieldUse),
    /// The last one: whether it is optional.
    Index(Box<[Self; 2]>, bool),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    Not(Box<Self>),
    Negative(Box<Self>),
    Or(Vec<Self>),
    And(Vec<Self>),
    Choice(Box<[Self; 3]>),
    Binary(&'static str, Box<[Self; 2]>),
    /// Whether a text matches a pattern that is written in the rule.
    Matches(Box<Self>, Regex),
    Call(&'static Function, Vec<Self>),
    Fold(Box<Fold>),
}

/// A value that is written in a rule.
#[derive(Debug)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
}

/// The name of a field.
#[derive(Debug)]
pub(super) struct Field {
    /// As the rule writes it.
    pub(super) written: String,
    /// As the definition has it, if it is a property.
    pub(super) property: String,
}

/// What is done with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldUse {
    /// It must be there.
    Read,
    /// `.?`
    Optional,
    /// `has()`
    Has,
}

/// A macro with variables of its own.
#[derive(Debug)]
pub(super) struct Fold {
    pub(super) kind: FoldKind,
    pub(super) range: Expr,
    /// Whether it has a variable for the key, or index, besides that for the value.
    pub(super) has_key: bool,
    /// Which entries count.
    pub(super) condition: Option<Expr>,
    pub(super) body: Expr,
}

/// The macros with variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoldKind {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    OptMap,
    OptFlatMap,
}

/// Parses a rule.
///
/// # Errors
/// Why it cannot be evaluated, as the rest of a sentence.
pub(super) fn parse(text: &str) -> Result<Program, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has more than {} KiB", MAX_BYTES >> 10));
    }
    let mut parser = Parser {
        tokens: tokens(text)?,
        at: 0,
        variables: vec!["self".to_owned(), "oldSelf".to_owned()],
        nesting: 0,
        reads_old: false,
        fields: Vec::new(),
    };
    let (root, _) = parser.choice()?;
    match parser.next() {
        Token::End => Ok(Program { root, reads_old: parser.reads_old, fields: parser.fields }),
        token => unexpected(&token),
    }
}

/// A part of a rule, and its height: the steps down to its lowest leaf.
type Parsed = Result<(Expr, usize), String>;

/// Reads words from left to right.
struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    /// The next word.
    at: usize,
    /// The variables that can be read here.
    variables: Vec<String>,
    /// How many brackets are open, and choices.
    nesting: usize,
    reads_old: bool,
    fields: Vec<String>,
}

/// A part above others, the highest of which has this height.
fn above(height: usize, make: impl FnOnce() -> Expr) -> Parsed {
    if height >= MAX_DEPTH { Err(too_deep()) } else { Ok((make(), height + 1)) }
}

fn binary(symbol: &'static str, left: (Expr, usize), right: (Expr, usize)) -> Parsed {
    above(left.1.max(right.1), || Expr::Binary(symbol, Box::new([left.0, right.0])))
}

const fn literal(literal: Literal) -> (Expr, usize) {
    (Expr::Literal(literal), 0)
}

fn too_deep() -> String {
    format!("it nests more than {MAX_DEPTH} levels deep")
}

fn unexpected<T>(token: &Token<'_>) -> Result<T, String> {
    Err(match token {
        Token::End => "it ends too early".to_owned(),
        Token::Symbol(symbol) => format!("{symbol:?} is not expected"),
        Token::Name(name) => format!("{name:?} is not expected"),
        Token::Int(_) | Token::Uint(_) | Token::Double(_) | Token::Text(_) => {
            "a value is not expected".to_owned()
        }
    })
}

impl<'t> Parser<'t> {
    fn next(&mut self) -> Token<'t> {
        self.at += 1;
        self.tokens.get_mut(self.at - 1).map_or(Token::End, |token| mem::replace(token, Token::End))
    }

    /// The word that is so many words ahead.
    fn peek(&self, ahead: usize) -> &Token<'t> {
        self.tokens.get(self.at + ahead).unwrap_or(&Token::End)
    }

    fn is_next(&self, symbol: &'static str) -> bool {
        *self.peek(0) == Token::Symbol(symbol)
    }

    /// Takes one of these symbols, if it is next.
    fn take(&mut self, symbols: &[&'static str]) -> Option<&'static str> {
        let taken = symbols.iter().copied().find(|symbol| self.is_next(symbol))?;
        self.at += 1;
        Some(taken)
    }

    fn expect(&mut self, symbol: &'static str) -> Result<(), String> {
        match self.next() {
            Token::Symbol(next) if next == symbol => Ok(()),
            token => unexpected(&token),
        }
    }

    fn name(&mut self) -> Result<&'t str, String> {
        match self.next() {
            Token::Name(name) => Ok(name),
            token => unexpected(&token),
        }
    }

    /// `a ? b : c`, or anything that binds closer. What is in brackets comes by here.
    fn choice(&mut self) -> Parsed {
        self.nesting += 1;
        if self.nesting > MAX_DEPTH {
            return Err(too_deep());
        }
        let (condition, height) = self.either()?;
        let parsed = if self.take(&["?"]).is_some() {
            let (then, of_then) = self.either()?;
            self.expect(":")?;
            let (otherwise, of_otherwise) = self.choice()?;
            let height = height.max(of_then).max(of_otherwise);
            above(height, || Expr::Choice(Box::new([condition, then, otherwise])))?
        } else {
            (condition, height)
        };
        self.nesting -= 1;
        Ok(parsed)
    }

    fn either(&mut self) -> Parsed {
        self.chain("||", Self::both, Expr::Or)
    }

    fn both(&mut self) -> Parsed {
        self.chain("&&", Self::relation, Expr::And)
    }

    /// Parts of which the order does not matter.
    fn chain(
        &mut self,
        symbol: &'static str,
        part: fn(&mut Self) -> Parsed,
        join: fn(Vec<Expr>) -> Expr,
    ) -> Parsed {
        let first = part(self)?;
        if !self.is_next(symbol) {
            return Ok(first);
        }
        let (mut parts, mut height) = (vec![first.0], first.1);
        while self.take(&[symbol]).is_some() {
            let (next, of_next) = part(self)?;
            height = height.max(of_next);
            parts.push(next);
        }
        above(height, || join(parts))
    }

    fn relation(&mut self) -> Parsed {
        let mut left = self.sum()?;
        loop {
            let symbol = match self.take(&["==", "!=", "<=", ">=", "<", ">"]) {
                Some(symbol) => symbol,
                None if *self.peek(0) == Token::Name("in") => {
                    self.at += 1;
                    "in"
                }
                None => return Ok(left),
            };
            let right = self.sum()?;
            left = binary(symbol, left, right)?;
        }
    }

    fn sum(&mut self) -> Parsed {
        let mut left = self.product()?;
        while let Some(symbol) = self.take(&["+", "-"]) {
            let right = self.product()?;
            left = binary(symbol, left, right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Parsed {
        let mut left = self.unary()?;
        while let Some(symbol) = self.take(&["*", "/", "%"]) {
            let right = self.unary()?;
            left = binary(symbol, left, right)?;
        }
        Ok(left)
    }

    /// `!a`, `-a`, or anything that binds closer.
    fn unary(&mut self) -> Parsed {
        if self.is_next("-") {
            let negative = match *self.peek(1) {
                Token::Int(number) => Some(0_i64.checked_sub_unsigned(number).map(Literal::Int)),
                Token::Double(number) => Some(Some(Literal::Double(-number))),
                _ => None,
            };
            if let Some(negative) = negative {
                self.at += 2;
                return self.members(literal(negative.ok_or("a number is too large")?));
            }
        }
        let Some(symbol) = self.take(&["!", "-"]) else {
            let first = self.primary()?;
            return self.members(first);
        };
        let mut times = 1;
        while self.take(&[symbol]).is_some() {
            times += 1;
        }
        let first = self.primary()?;
        let (operand, height) = self.members(first)?;
        let operand = Box::new(operand);
        match (symbol, times % 2) {
            ("!", 0) => above(height + 1, || Expr::Not(Box::new(Expr::Not(operand)))),
            ("!", _) => above(height, || Expr::Not(operand)),
            (_, 0) => above(height + 1, || Expr::Negative(Box::new(Expr::Negative(operand)))),
            _ => above(height, || Expr::Negative(operand)),
        }
    }

    /// Fields, indexes and methods of a value.
    fn members(&mut self, first: (Expr, usize)) -> Parsed {
        let (mut value, mut height) = first;
        while let Some(symbol) = self.take(&[".", "["]) {
            let is_optional = self.take(&["?"]).is_some();
            (value, height) = if symbol == "[" {
                let (index, of_index) = self.choice()?;
                self.expect("]")?;
                above(height.max(of_index), || Expr::Index(Box::new([value, index]), is_optional))?
            } else {
                let name = self.name()?;
                if !is_optional && self.take(&["("]).is_some() {
                    self.method(name, value, height)?
                } else {
                    let how = if is_optional { FieldUse::Optional } else { FieldUse::Read };
                    let field = Field::new(name);
                    if matches!(value, Expr::Variable(0)) && !self.fields.contains(&field.property) {
                        self.fields.push(field.property.clone());
                    }
                    above(height, || Expr::Field(Box::new(value), field, how))?
                }
            };
        }
        Ok((value, height))
    }

    fn primary(&mut self) -> Parsed {
        Ok(match self.next() {
            Token::Int(number) => {
                literal(Literal::Int(i64::try_from(number).map_err(|_| "a number is too large".to_owned())?))
            }
            Token::Uint(number) => literal(Literal::Uint(number)),
            Token::Double(number) => literal(Literal::Double(number)),
            Token::Text(text) => literal(Literal::Text(text)),
            Token::Name("true") => literal(Literal::Bool(true)),
            Token::Name("false") => literal(Literal::Bool(false)),
            Token::Name("null") => literal(Literal::Null),
            Token::Name(name) => return self.named(name),
            Token::Symbol("(") => {
                let inner = self.choice()?;
                self.expect(")")?;
                inner
            }
            Token::Symbol("[") => {
                let (elements, height) = self.list("]")?;
                above(height, || Expr::List(elements))?
            }
            Token::Symbol("{") => return self.map(),
            token => return unexpected(&token),
        })
    }

    /// Values up to a closing bracket, and the greatest height.
    fn list(&mut self, end: &'static str) -> Result<(Vec<Expr>, usize), String> {
        let (mut values, mut height) = (Vec::new(), 0);
        while self.take(&[end]).is_none() {
            let (value, of_value) = self.choice()?;
            height = height.max(of_value);
            values.push(value);
            if self.take(&[","]).is_none() && !self.is_next(end) {
                return unexpected(&self.next());
            }
        }
        Ok((values, height))
    }

    fn map(&mut self) -> Parsed {
        let (mut entries, mut height) = (Vec::new(), 0);
        while self.take(&["}"]).is_none() {
            let (key, of_key) = self.choice()?;
            self.expect(":")?;
            let (value, of_value) = self.choice()?;
            height = height.max(of_key).max(of_value);
            entries.push((key, value));
            if self.take(&[","]).is_none() && !self.is_next("}") {
                return unexpected(&self.next());
            }
        }
        above(height, || Expr::Map(entries))
    }

    /// A variable, a function, or a function of a library.
    fn named(&mut self, name: &'t str) -> Parsed {
        if self.take(&["("]).is_some() {
            return if name == "has" { self.has() } else { self.function(name) };
        }
        if let Some(slot) = self.variables.iter().rposition(|variable| variable == name) {
            self.reads_old |= slot == 1;
            return Ok((Expr::Variable(slot), 0));
        }
        if let (Token::Symbol("."), Token::Name(of_library), Token::Symbol("(")) =
            (self.peek(0), self.peek(1), self.peek(2))
        {
            let name = format!("{name}.{of_library}");
            self.at += 3;
            return self.function(&name);
        }
        Err(format!("the variable {name:?} is not known"))
    }

    fn has(&mut self) -> Parsed {
        let (tested, height) = self.choice()?;
        self.expect(")")?;
        match tested {
            Expr::Field(value, field, FieldUse::Read) => {
                Ok((Expr::Field(value, field, FieldUse::Has), height))
            }
            _ => Err("has() needs a field".to_owned()),
        }
    }

    fn function(&mut self, name: &str) -> Parsed {
        let (arguments, height) = self.list(")")?;
        call(name, Style::Global, arguments, height)
    }

    fn method(&mut self, name: &str, value: Expr, height: usize) -> Parsed {
        let kind = match name {
            "all" => FoldKind::All,
            "exists" => FoldKind::Exists,
            "exists_one" | "existsOne" => FoldKind::ExistsOne,
            "filter" => FoldKind::Filter,
            "map" => FoldKind::Map,
            "optMap" => FoldKind::OptMap,
            "optFlatMap" => FoldKind::OptFlatMap,
            _ => {
                let (mut arguments, of_arguments) = self.list(")")?;
                arguments.insert(0, value);
                return call(name, Style::Method, arguments, height.max(of_arguments));
            }
        };
        let known = self.variables.len();
        self.variable()?;
        let for_two = matches!(kind, FoldKind::All | FoldKind::Exists | FoldKind::ExistsOne);
        let has_key = for_two && matches!((self.peek(0), self.peek(1)), (Token::Name(_), Token::Symbol(",")));
        if has_key {
            self.variable()?;
        }
        let (arguments, of_arguments) = self.list(")")?;
        self.variables.truncate(known);
        let height = height.max(of_arguments);
        let mut arguments = arguments.into_iter();
        let (condition, body) = match (arguments.next(), arguments.next(), arguments.next()) {
            (Some(body), None, _) => (None, body),
            (condition @ Some(_), Some(body), None) if kind == FoldKind::Map => (condition, body),
            _ => return Err(format!("{name}() has a wrong number of arguments")),
        };
        above(height, || Expr::Fold(Box::new(Fold { kind, range: value, has_key, condition, body })))
    }

    /// A variable of a macro, with the comma behind it.
    fn variable(&mut self) -> Result<(), String> {
        let name = self.name()?.to_owned();
        self.variables.push(name);
        self.expect(",")
    }
}

/// A call of a function, or of a method with its value as the first argument.
fn call(name: &str, style: Style, mut arguments: Vec<Expr>, height: usize) -> Parsed {
    let function = library::find(name, style, arguments.len())?;
    if function.name == "matches"
        && let Some(Expr::Literal(Literal::Text(pattern))) = arguments.last()
    {
        let regex = scalar::compile(pattern, MAX_PATTERN_BYTES).ok_or("its pattern is not valid")?;
        arguments.truncate(1);
        let text = arguments.pop().ok_or("matches() has no text")?;
        return above(height, || Expr::Matches(Box::new(text), regex));
    }
    above(height, || Expr::Call(function, arguments))
}

impl Field {
    fn new(written: &str) -> Self {
        Self { written: written.to_owned(), property: property(written) }
    }
}

/// The words that rules cannot have as names, and so write as `__in__`.
const RESERVED: [&str; 21] = [
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if",
    "import", "let", "loop", "package", "namespace", "return", "var", "void", "while",
];

/// The name of a property that a rule writes in this way.
/// Source: Kubernetes documentation, "Validation rules", escaping.
fn property(written: &str) -> String {
    const ESCAPES: [(&str, &str); 4] =
        [("__underscores__", "__"), ("__dot__", "."), ("__dash__", "-"), ("__slash__", "/")];
    if let Some(word) = written.strip_prefix("__").and_then(|word| word.strip_suffix("__"))
        && RESERVED.contains(&word)
    {
        return word.to_owned();
    }
    let (mut name, mut rest) = (String::new(), written);
    while let Some(at) = rest.find("__") {
        let (before, escape) = rest.split_at(at);
        let known =
            ESCAPES.into_iter().find_map(|(escaped, plain)| Some((plain, escape.strip_prefix(escaped)?)));
        let (plain, behind) = known.unwrap_or(("__", escape.trim_start_matches("__")));
        name.push_str(before);
        name.push_str(plain);
        rest = behind;
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).expect_err(text)
    }

    #[test]
    fn names_of_properties() {
        for (written, name) in [
            ("name", "name"),
            ("my_field", "my_field"),
            ("__namespace__", "namespace"),
            ("foo__dash__bar", "foo-bar"),
            ("a__dot__b__slash__c__underscores__d", "a.b/c__d"),
        ] {
            assert_eq!(property(written), name);
        }
    }

    #[test]
    fn says_why_a_rule_is_not_evaluated() {
        for (rule, why) in [
            ("self.", "it ends too early"),
            ("self.a b", "\"b\" is not expected"),
            ("self.a)", "\")\" is not expected"),
            ("other.a", "the variable \"other\" is not known"),
            ("self.frobnicate()", "the function frobnicate() is not known to memgate"),
            ("self.startsWith()", "startsWith() has a wrong number of arguments"),
            ("self.all(x)", "\")\" is not expected"),
            ("self.matches('(')", "its pattern is not valid"),
            ("self.matches('(?=a)')", "its pattern is not valid"),
            ("self.matches('(a{900}){900}')", "its pattern is not valid"),
            ("b'a' == self", "it has a text of bytes"),
            ("1 2", "a value is not expected"),
            ("", "it ends too early"),
        ] {
            assert_eq!(refused(rule), why, "{rule}");
        }
    }

    #[test]
    fn bounds_length_and_depth() {
        assert_eq!(refused(&"(".repeat(100_000)), "it has more than 16 KiB");
        assert_eq!(refused(&"x".repeat(10 << 20)), "it has more than 16 KiB");
        for deep in
            ["(", "[", "{1:", "!(", "-(", "self[", "size(", "true ? true : ", "self.a(", "self.all(x, "]
        {
            assert!(parse(&deep.repeat((16 << 10) / deep.len())).is_err(), "{deep}");
        }
        let too_deep = "it nests more than 50 levels deep";
        for (start, part) in
            [("1", " + 1"), ("self", ".a"), ("self", "[0]"), ("self", ".trim()"), ("1", " == 1")]
        {
            let chain = |count| format!("{start}{}", part.repeat(count));
            assert!(parse(&chain(49)).is_ok(), "{part}");
            assert_eq!(refused(&chain(51)), too_deep, "{part}");
        }
        assert_eq!(refused(&format!("{}1{}", "[".repeat(60), "]".repeat(60))), too_deep);
        assert_eq!(refused(&format!("{}1{}", "(".repeat(60), ")".repeat(60))), too_deep);
        // These do not nest.
        assert!(parse(&format!("true{}", " && true".repeat(1_000))).is_ok());
        assert!(parse(&format!("{}true", "!".repeat(10_000))).is_ok());
    }
}
