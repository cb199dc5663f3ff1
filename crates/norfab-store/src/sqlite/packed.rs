//! Rows of parameters as two blobs, out of which statements cut fields: numbers of a fixed width, and texts. A field of a row
//! of JSON costs SQLite many times as much, as it prints and reads the row again for each.

/// The width of a number: that of the longest, with its sign.
const WIDTH: usize = 20;
/// Stands for NULL; no number that is stored is this.
const NULL: i64 = i64::MIN;

/// Rows of `FIELDS` numbers each, of which a text takes two: where it lies and its length. In SQL, field `F` of row `N` is
/// `CAST(substr(NUMBERS, N * 20 * FIELDS + 20 * F + 1, 20) AS INTEGER)`.
#[derive(Debug, Default)]
pub(super) struct Packed<const FIELDS: usize> {
    numbers: Vec<u8>,
    texts: Vec<u8>,
}

impl<const FIELDS: usize> Packed<FIELDS> {
    pub(super) fn with_capacity(rows: usize) -> Self {
        Self { numbers: Vec::with_capacity(rows * FIELDS * WIDTH), texts: Vec::new() }
    }

    /// Adds a row.
    pub(super) fn push(&mut self, fields: [Option<i64>; FIELDS]) {
        for field in fields {
            self.number(field.unwrap_or(NULL));
        }
    }

    /// Puts a text among the texts, unless it is the one that was put there last (`last`), and returns where it lies and its
    /// length.
    pub(super) fn text(&mut self, text: Option<&str>, last: &mut Place) -> [Option<i64>; 2] {
        let Some(text) = text else { return [None, None] };
        if self.texts.get(last.at..last.at + last.bytes) != Some(text.as_bytes()) {
            *last = self.bytes(text.as_bytes());
        }
        last.fields()
    }

    /// Puts bytes among the texts.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> Place {
        let at = self.texts.len();
        self.texts.extend_from_slice(bytes);
        Place { at, bytes: bytes.len() }
    }

    /// The numbers and the texts.
    pub(super) fn into_blobs(self) -> (Vec<u8>, Vec<u8>) {
        (self.numbers, self.texts)
    }

    /// Writes a number to the right of its field.
    fn number(&mut self, number: i64) {
        let mut field = [b' '; WIDTH];
        let mut rest = number.unsigned_abs();
        let mut places = field.iter_mut().rev();
        for place in places.by_ref() {
            // A digit fits.
            *place = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0
            && let Some(sign) = places.next()
        {
            *sign = b'-';
        }
        self.numbers.extend_from_slice(&field);
    }
}

/// Where a text lies.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    at: usize,
    bytes: usize,
}

impl Place {
    /// The two fields that tell it; SQLite counts from 1.
    pub(super) fn fields(self) -> [Option<i64>; 2] {
        [i64::try_from(self.at + 1).ok(), i64::try_from(self.bytes).ok()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sqlx::{Connection, SqliteConnection};

    async fn check(numbers: [Option<i64>; 2]) {
        let mut packed = Packed::<2>::with_capacity(2);
        packed.push([Some(7), None]);
        packed.push(numbers);
        let (blob, _) = packed.into_blobs();
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        let read: (Option<i64>, Option<i64>) = sqlx::query_as(
            "SELECT nullif(CAST(substr(?1, 41, 20) AS INTEGER), -9223372036854775808),
                 nullif(CAST(substr(?1, 61, 20) AS INTEGER), -9223372036854775808)",
        )
        .bind(blob)
        .fetch_one(&mut connection)
        .await
        .unwrap();
        assert_eq!([read.0, read.1], numbers);
    }

    #[tokio::test]
    async fn numbers_are_read_as_they_were_written() {
        check([Some(0), Some(-1)]).await;
        check([Some(i64::MAX), Some(i64::MIN + 1)]).await;
        check([None, Some(1_795_996_800_000_000)]).await;
    }

    #[test]
    fn equal_texts_that_follow_each_other_are_stored_once() {
        let (mut packed, mut last) = (Packed::<2>::default(), Place::default());
        let places = ["same", "same", "other", ""].map(|text| packed.text(Some(text), &mut last));
        assert_eq!(places, [[1, 4], [1, 4], [5, 5], [10, 0]].map(|place| place.map(Some)));
        assert_eq!(packed.text(None, &mut last), [None, None]);
        assert_eq!(packed.into_blobs().1, b"sameother");
    }
}
