//! JSON kept as the text it came as: payloads pass through without being taken apart, so that no number loses a digit.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// One valid JSON value, kept as its text. Its `Debug` shows the length only: arguments and results must not reach a log.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Takes a text that must be one JSON value.
    ///
    /// # Errors
    /// What serde_json says of it: position, and what it had expected there.
    pub fn parse(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self)
    }

    /// Serialises any value.
    ///
    /// # Errors
    /// When the value has no JSON form, such as a map whose keys are not text.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The text, without blanks around it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Takes it apart into a type. Integers beyond 64 bits survive only as text.
    ///
    /// # Errors
    /// When it is valid JSON of another shape.
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// `[]`.
    #[must_use]
    pub fn empty_array() -> Self {
        Self::from(&Value::Array(Vec::new()))
    }

    /// `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self::from(&Value::Object(serde_json::Map::new()))
    }

    /// Whether it is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        self.as_str().starts_with('[')
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }
}

impl From<&Value> for Json {
    fn from(value: &Value) -> Self {
        // A Value prints as valid JSON always, so the fallback is never taken.
        Self(RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        Self::from(&value)
    }
}

impl PartialEq for Json {
    /// Equal text, not only equal meaning.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.as_str().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_survive() {
        let text = r#"{"n":123456789012345678901234567890.10,"m":1e300}"#;
        let json = Json::parse(format!("  {text}\n")).expect("valid");
        assert_eq!(json.as_str(), text);
        assert_eq!(serde_json::to_string(&json).expect("serialises"), text);
    }

    #[test]
    fn shapes() {
        assert!(Json::empty_array().is_array() && Json::empty_object().is_object());
        assert!(Json::parse("{} {}").is_err() && Json::parse("").is_err() && Json::parse("NaN").is_err());
        assert_eq!(format!("{:?}", Json::parse("\"secret\"").expect("valid")), "Json(8 bytes)");
    }
}
