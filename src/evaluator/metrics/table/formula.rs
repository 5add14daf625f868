//! Formulas of conditional formats, as far as rules on what a cell shows need them.
//!
//! OSWorld evaluates them with the Python package `formulas`, and gives the cell's value for the
//! first thing that a formula refers to. Departs: a formula with other functions or of arrays has
//! no score here.

use serde_json::Value;

use super::super::MetricError;
use super::super::python::{self, raised};

/// A formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Formula {
    Number(f64),
    Text(String),
    Bool(bool),
    /// Index into what the formula refers to.
    Input(usize),
    Negative(Box<Formula>),
    Percent(Box<Formula>),
    Binary(&'static str, Box<Formula>, Box<Formula>),
    Call(String, Vec<Formula>),
}

/// What evaluating gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    Number(f64),
    Text(String),
    Bool(bool),
    Error,
    /// Values of a range; what is no number in it is nothing.
    Numbers(Vec<Option<f64>>),
}

/// Operators from the weakest to the strongest, those of a line alike.
const OPERATORS: [&[&str]; 5] = [
    &["<=", ">=", "<>", "=", "<", ">"],
    &["&"],
    &["+", "-"],
    &["*", "/"],
    &["^"],
];

/// A formula with what it refers to, in order, without dollars. None where it is no formula.
pub(super) fn parse(text: &str) -> Option<(Formula, Vec<String>)> {
    let mut parser = Parser {
        rest: text,
        inputs: Vec::new(),
    };
    let formula = parser.binary(0)?;
    parser.skip_blanks();
    parser.rest.is_empty().then_some((formula, parser.inputs))
}

struct Parser<'a> {
    rest: &'a str,
    inputs: Vec<String>,
}

impl Parser<'_> {
    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn takes(&mut self, mark: &str) -> bool {
        self.skip_blanks();
        let rest = self.rest.strip_prefix(mark);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn binary(&mut self, level: usize) -> Option<Formula> {
        let Some(operators) = OPERATORS.get(level) else {
            return self.unary();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.takes(operator)) {
            let right = self.binary(level + 1)?;
            left = Formula::Binary(operator, Box::new(left), Box::new(right));
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<Formula> {
        if self.takes("-") {
            return Some(Formula::Negative(Box::new(self.unary()?)));
        }
        if self.takes("+") {
            return self.unary();
        }
        let mut inner = self.primary()?;
        while self.takes("%") {
            inner = Formula::Percent(Box::new(inner));
        }
        Some(inner)
    }

    fn primary(&mut self) -> Option<Formula> {
        if self.takes("(") {
            let inner = self.binary(0)?;
            return self.takes(")").then_some(inner);
        }
        if self.takes("\"") {
            return self.text();
        }
        let is_name = |c: char| c.is_alphanumeric() || "$._:!'".contains(c);
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if let Ok(number) = word.parse() {
            self.rest = rest;
            return Some(Formula::Number(number));
        }
        if word.is_empty() {
            return None;
        }
        self.rest = rest;
        let name = word.to_uppercase();
        if self.takes("(") {
            return Some(Formula::Call(name, self.arguments()?));
        }
        match name.as_str() {
            "TRUE" => Some(Formula::Bool(true)),
            "FALSE" => Some(Formula::Bool(false)),
            _ => Some(Formula::Input(self.input(&name.replace('$', "")))),
        }
    }

    fn text(&mut self) -> Option<Formula> {
        let mut text = String::new();
        loop {
            let (inner, rest) = self.rest.split_once('"')?;
            text.push_str(inner);
            self.rest = rest;
            match rest.strip_prefix('"') {
                Some(rest) => {
                    text.push('"');
                    self.rest = rest;
                }
                None => return Some(Formula::Text(text)),
            }
        }
    }

    fn arguments(&mut self) -> Option<Vec<Formula>> {
        let mut arguments = Vec::new();
        if self.takes(")") {
            return Some(arguments);
        }
        loop {
            arguments.push(self.binary(0)?);
            if self.takes(")") {
                return Some(arguments);
            }
            if !self.takes(",") {
                return None;
            }
        }
    }

    fn input(&mut self, name: &str) -> usize {
        let known = self.inputs.iter().position(|input| input == name);
        known.unwrap_or_else(|| {
            self.inputs.push(name.to_owned());
            self.inputs.len() - 1
        })
    }
}

impl Formula {
    /// What it comes to with values for what it refers to.
    pub(super) fn evaluate(&self, inputs: &[Outcome]) -> Result<Outcome, MetricError> {
        match self {
            Self::Number(number) => Ok(Outcome::Number(*number)),
            Self::Text(text) => Ok(Outcome::Text(text.clone())),
            Self::Bool(flag) => Ok(Outcome::Bool(*flag)),
            Self::Input(at) => {
                let input = inputs.get(*at).cloned();
                input.ok_or_else(|| raised("a formula lacks what it refers to"))
            }
            Self::Negative(inner) => {
                arithmetic("-", &Outcome::Number(0.0), &inner.evaluate(inputs)?)
            }
            Self::Percent(inner) => {
                arithmetic("/", &inner.evaluate(inputs)?, &Outcome::Number(100.0))
            }
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(inputs)?, right.evaluate(inputs)?);
                match *operator {
                    "=" | "<>" | "<" | "<=" | ">" | ">=" => compare(operator, &left, &right),
                    _ => arithmetic(operator, &left, &right),
                }
            }
            Self::Call(name, arguments) => {
                let arguments = arguments.iter().map(|argument| argument.evaluate(inputs));
                call(name, &arguments.collect::<Result<Vec<_>, _>>()?)
            }
        }
    }
}

impl Outcome {
    /// A cell's value; none where a formula cannot have it.
    pub(super) fn of(value: &Value) -> Result<Self, MetricError> {
        match value {
            Value::Number(number) => Ok(Self::Number(number.as_f64().unwrap_or_default())),
            Value::String(text) => Ok(Self::Text(text.clone())),
            _ => Err(raised(
                "a formula refers to what is neither text nor number",
            )),
        }
    }

    /// As Python's `bool` has it: an error is something.
    pub(super) fn is_true(&self) -> Result<bool, MetricError> {
        match self {
            Self::Number(number) => Ok(*number != 0.0),
            Self::Text(text) => Ok(!text.is_empty()),
            Self::Bool(flag) => Ok(*flag),
            Self::Error => Ok(true),
            Self::Numbers(_) => Err(unknown("a range")),
        }
    }

    /// As a text; none of an error.
    fn text(&self) -> Result<Option<String>, MetricError> {
        Ok(match self {
            Self::Number(number) => Some(number.to_string()),
            Self::Text(text) => Some(text.clone()),
            Self::Bool(flag) => Some(flag.to_string().to_uppercase()),
            Self::Error => None,
            Self::Numbers(_) => return Err(unknown("a range")),
        })
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Bool(flag) => Some(f64::from(u8::from(*flag))),
            Self::Text(text) => text.trim().parse().ok(),
            Self::Error | Self::Numbers(_) => None,
        }
    }
}

fn unknown(what: &str) -> MetricError {
    raised(format!(
        "{what} in a conditional format is not evaluated here"
    ))
}

/// Numbers are below texts, those below flags; texts compare without case.
fn compare(operator: &str, left: &Outcome, right: &Outcome) -> Result<Outcome, MetricError> {
    let rank = |outcome: &Outcome| match outcome {
        Outcome::Number(_) => Some(0),
        Outcome::Text(_) => Some(1),
        Outcome::Bool(_) => Some(2),
        Outcome::Error | Outcome::Numbers(_) => None,
    };
    let order = match (left, right) {
        (Outcome::Numbers(_), _) | (_, Outcome::Numbers(_)) => return Err(unknown("a range")),
        (Outcome::Error, _) | (_, Outcome::Error) => return Ok(Outcome::Error),
        (Outcome::Text(left), Outcome::Text(right)) => {
            left.to_uppercase().partial_cmp(&right.to_uppercase())
        }
        _ if rank(left) == rank(right) => left.number().partial_cmp(&right.number()),
        _ => rank(left).partial_cmp(&rank(right)),
    };
    let Some(order) = order else {
        return Ok(Outcome::Bool(operator == "<>"));
    };
    Ok(Outcome::Bool(match operator {
        "=" => order.is_eq(),
        "<>" => order.is_ne(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_ge(),
    }))
}

fn arithmetic(operator: &str, left: &Outcome, right: &Outcome) -> Result<Outcome, MetricError> {
    if operator == "&" {
        let joined = left.text()?.zip(right.text()?);
        return Ok(joined.map_or(Outcome::Error, |(left, right)| {
            Outcome::Text(format!("{left}{right}"))
        }));
    }
    if matches!(left, Outcome::Numbers(_)) || matches!(right, Outcome::Numbers(_)) {
        return Err(unknown("a range"));
    }
    let Some((left, right)) = left.number().zip(right.number()) else {
        return Ok(Outcome::Error);
    };
    let result = match operator {
        "+" => left + right,
        "-" => left - right,
        "*" => left * right,
        "/" => left / right,
        _ => left.powf(right),
    };
    Ok(if result.is_finite() {
        Outcome::Number(result)
    } else {
        Outcome::Error
    })
}

fn call(name: &str, arguments: &[Outcome]) -> Result<Outcome, MetricError> {
    use Outcome::{Bool, Error, Number, Text};
    match (name, arguments) {
        ("ISERROR", [one]) => return Ok(Bool(*one == Error)),
        ("ISNUMBER", [one]) => return Ok(Bool(matches!(one, Number(_)))),
        ("ISTEXT", [one]) => return Ok(Bool(matches!(one, Text(_)))),
        _ => {}
    }
    if arguments.contains(&Error) {
        return Ok(Error);
    }
    Ok(match (name, arguments) {
        ("AND" | "OR", [_, ..]) => {
            let flags = arguments.iter().map(|argument| match argument {
                Bool(_) | Number(_) => argument.is_true(),
                _ => Err(unknown("a text or a range as a condition")),
            });
            let flags: Vec<bool> = flags.collect::<Result<_, _>>()?;
            Bool(if name == "AND" {
                flags.iter().all(|flag| *flag)
            } else {
                flags.iter().any(|flag| *flag)
            })
        }
        ("NOT", [Bool(_) | Number(_)]) => Bool(!arguments[0].is_true()?),
        ("LEN", [one]) => Number(one.text()?.map_or(0, |text| text.chars().count()) as f64),
        ("LEFT" | "RIGHT", [one, Number(count)]) if *count >= 0.0 => {
            let text = one.text()?.unwrap_or_default();
            let (count, len) = (*count as usize, text.chars().count());
            let skipped = if name == "LEFT" {
                0
            } else {
                len.saturating_sub(count)
            };
            Text(text.chars().skip(skipped).take(count).collect())
        }
        ("SEARCH", [Text(part), whole]) if !part.contains(['?', '*', '~']) => {
            let whole = match whole {
                // Python's way to write it, with a point.
                Number(number) => python::to_text(&(*number).into()),
                other => other.text()?.unwrap_or_default(),
            };
            let (part, whole) = (part.to_lowercase(), whole.to_lowercase());
            let at = whole.find(&part);
            at.map_or(Error, |at| Number(whole[..at].chars().count() as f64 + 1.0))
        }
        ("WEEKDAY", [Text(_), ..]) => Error,
        ("WEEKDAY", [Number(day), Number(first)]) if (1.0..4.0).contains(first) => {
            let (day, first) = (day.floor(), first.floor());
            let from_monday = (day + 5.0).rem_euclid(7.0);
            Number(match first as i64 {
                1 => (day - 1.0).rem_euclid(7.0) + 1.0,
                2 => from_monday + 1.0,
                _ => from_monday,
            })
        }
        ("WEEKDAY", [day]) => return call(name, &[day.clone(), Number(1.0)]),
        ("MOD", [Number(left), Number(right)]) if *right != 0.0 => {
            Number(left - right * (left / right).floor())
        }
        ("ABS", [Number(number)]) => Number(number.abs()),
        ("MAX" | "MIN" | "SUM" | "AVERAGE", [_, ..]) => sum_up(name, arguments)?,
        _ => return Err(unknown(name)),
    })
}

fn sum_up(name: &str, arguments: &[Outcome]) -> Result<Outcome, MetricError> {
    let mut numbers = Vec::new();
    for argument in arguments {
        match argument {
            Outcome::Number(number) => numbers.push(*number),
            Outcome::Numbers(several) => numbers.extend(several.iter().flatten()),
            _ => return Err(unknown("a text or a flag as a number")),
        }
    }
    let sum: f64 = numbers.iter().sum();
    let result = match name {
        _ if numbers.is_empty() => return Err(unknown("a range without numbers")),
        "MAX" => numbers.iter().copied().fold(f64::MIN, f64::max),
        "MIN" => numbers.iter().copied().fold(f64::MAX, f64::min),
        "SUM" => sum,
        _ => sum / numbers.len() as f64,
    };
    Ok(Outcome::Number(result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_come_to_what_spreadsheets_say() {
        let (number, text) = (Outcome::Number, |text: &str| Outcome::Text(text.into()));
        for (formula, value, expected) in [
            ("A1>5", number(6.0), Some(Outcome::Bool(true))),
            ("A1>5", text("x"), Some(Outcome::Bool(true))),
            ("A1=\"sat\"", text("Sat"), Some(Outcome::Bool(true))),
            ("1+2*3^2-4/2", number(0.0), Some(number(17.0))),
            ("-A1%", number(50.0), Some(number(-0.5))),
            ("A1+1>2", text("x"), Some(Outcome::Error)),
            (
                "WEEKDAY(A1,2)>5",
                number(44002.0),
                Some(Outcome::Bool(true)),
            ),
            ("WEEKDAY(A1)", number(44003.0), Some(number(1.0))),
            (
                "NOT(ISERROR(SEARCH(\"at\",A1)))",
                text("Sat"),
                Some(Outcome::Bool(true)),
            ),
            (
                "AND(A1>=1,OR(A1<0,A1<5))",
                number(3.0),
                Some(Outcome::Bool(true)),
            ),
            ("LEFT($A1,1)&\"\"\"\"", text("Sat"), Some(text("S\""))),
            ("MOD(A1,2)=0", number(-4.0), Some(Outcome::Bool(true))),
            ("LEN(A1)", number(-5.5), Some(number(4.0))),
            ("SEARCH(\".\",A1)", number(5.0), Some(number(2.0))),
            ("RIGHT(A1&TRUE,5)", number(5.0), Some(text("5TRUE"))),
            ("NOSUCH(A1)", number(1.0), None),
        ] {
            let (parsed, inputs) = parse(formula).unwrap();
            assert!(inputs.len() < 2, "{formula}");
            assert_eq!(parsed.evaluate(&[value]).ok(), expected, "{formula}");
        }
        for wrong in ["A1>", "(A1", "\"x", "A1 B1", "F(1", ""] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let (_, inputs) = parse("A1>MAX($B$1:$B$3)+a1").unwrap();
        assert_eq!(inputs, ["A1", "B1:B3"]);
    }
}
