//! A float that survives JSON: non-finite values are written as `"nan"`, `"inf"`, `"-inf"`.

use std::cmp::Ordering;
use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An `f64` whose non-finite values are strings in JSON, where serde_json would write `null`.
/// NaN equals NaN, so that what was read equals what was written.
#[derive(Clone, Copy, Debug, Default)]
pub struct F(pub f64);

impl PartialEq for F {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 || (self.0.is_nan() && other.0.is_nan())
    }
}

impl PartialOrd for F {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        self.0.partial_cmp(&other.0)
    }
}

impl Serialize for F {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            v if v.is_nan() => serializer.serialize_str("nan"),
            v if v.is_infinite() && v > 0.0 => serializer.serialize_str("inf"),
            v if v.is_infinite() => serializer.serialize_str("-inf"),
            v => serializer.serialize_f64(v),
        }
    }
}

impl<'de> Deserialize<'de> for F {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FloatVisitor)
    }
}

struct FloatVisitor;

impl Visitor<'_> for FloatVisitor {
    type Value = F;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, \"nan\", \"inf\" or \"-inf\"")
    }

    fn visit_f64<E: Error>(self, v: f64) -> Result<F, E> {
        Ok(F(v))
    }

    fn visit_i64<E: Error>(self, v: i64) -> Result<F, E> {
        Ok(F(v as f64))
    }

    fn visit_u64<E: Error>(self, v: u64) -> Result<F, E> {
        Ok(F(v as f64))
    }

    fn visit_str<E: Error>(self, v: &str) -> Result<F, E> {
        match v {
            "nan" => Ok(F(f64::NAN)),
            "inf" => Ok(F(f64::INFINITY)),
            "-inf" => Ok(F(f64::NEG_INFINITY)),
            other => Err(E::custom(format!("not a number: {other}"))),
        }
    }
}

impl From<f64> for F {
    fn from(value: f64) -> Self {
        F(value)
    }
}

impl From<f32> for F {
    fn from(value: f32) -> Self {
        F(f64::from(value))
    }
}
