//! Parameters and rows, the same for both engines.

use crate::StoreError;
use abide_core::{
    CommentId, DeliveryId, HookId, IssueId, LabelId, MilestoneId, PushId, RedirectId, RepoId, ThreadId, Timestamp,
    TransferId, UserId,
};
use sqlx::Row as _;
use std::str::FromStr;

/// A statement parameter. Nulls are typed, because PostgreSQL needs the type of a missing value.
#[derive(Debug, Clone)]
pub enum Value {
    /// A number, an id or a time.
    Int(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
    Bool(Option<bool>),
}

macro_rules! into_value {
    ($($from:ty => $variant:ident($convert:expr)),+ $(,)?) => {
        $(
            impl From<$from> for Value {
                fn from(value: $from) -> Self {
                    Self::$variant(Some($convert(value)))
                }
            }
            impl From<Option<$from>> for Value {
                fn from(value: Option<$from>) -> Self {
                    Self::$variant(value.map($convert))
                }
            }
        )+
    };
}

into_value! {
    i64 => Int(|value| value),
    Timestamp => Int(Timestamp::micros),
    RepoId => Int(RepoId::get),
    RedirectId => Int(RedirectId::get),
    TransferId => Int(TransferId::get),
    UserId => Int(UserId::get),
    PushId => Int(PushId::get),
    IssueId => Int(IssueId::get),
    CommentId => Int(CommentId::get),
    LabelId => Int(LabelId::get),
    MilestoneId => Int(MilestoneId::get),
    HookId => Int(HookId::get),
    DeliveryId => Int(DeliveryId::get),
    ThreadId => Int(ThreadId::get),
    &str => Text(str::to_owned),
    &String => Text(String::clone),
    String => Text(|value| value),
    &[u8] => Bytes(<[u8]>::to_vec),
    Vec<u8> => Bytes(|value| value),
    bool => Bool(|value| value),
}

/// Parameters of a statement, converted one by one.
#[macro_export]
#[doc(hidden)]
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::Value::from($value)),*] };
}
pub(crate) use params;

pub enum Row {
    Sqlite(sqlx::sqlite::SqliteRow),
    Postgres(sqlx::postgres::PgRow),
}

macro_rules! getter {
    ($(#[$doc:meta])* $name:ident -> $type:ty) => {
        $(#[$doc])*
        pub fn $name(&self, column: &'static str) -> Result<$type, StoreError> {
            match self {
                Self::Sqlite(row) => row.try_get(column),
                Self::Postgres(row) => row.try_get(column),
            }
            .map_err(|error| StoreError::Unreadable { column, reason: error.to_string() })
        }
    };
}

impl Row {
    getter! {
        /// A number.
        int -> i64
    }
    getter! {
        /// A nullable number.
        opt_int -> Option<i64>
    }
    getter! {
        /// Text.
        text -> String
    }
    getter! {
        /// Nullable text.
        opt_text -> Option<String>
    }
    getter! {
        /// Bytes.
        bytes -> Vec<u8>
    }
    getter! {
        /// Nullable bytes.
        opt_bytes -> Option<Vec<u8>>
    }
    getter! {
        /// A boolean.
        bool -> bool
    }
    getter! {
        /// A nullable boolean.
        opt_bool -> Option<bool>
    }

    /// An event id or a key.
    pub fn bytes32(&self, column: &'static str) -> Result<[u8; 32], StoreError> {
        let bytes = self.bytes(column)?;
        <[u8; 32]>::try_from(bytes.as_slice())
            .map_err(|_| StoreError::Unreadable { column, reason: format!("{} bytes instead of 32", bytes.len()) })
    }

    /// A time.
    pub fn time(&self, column: &'static str) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp::from_micros)
    }

    /// A nullable time.
    pub fn opt_time(&self, column: &'static str) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(column)?.map(Timestamp::from_micros))
    }

    /// A nullable value of a closed set.
    pub fn opt_parsed<T>(&self, column: &'static str) -> Result<Option<T>, StoreError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.opt_text(column)?.map(|_| self.parsed(column)).transpose()
    }

    /// A value of a closed set, stored as text.
    pub fn parsed<T>(&self, column: &'static str) -> Result<T, StoreError>
    where
        T: FromStr,
        T::Err: std::fmt::Display,
    {
        self.text(column)?.parse().map_err(|error: T::Err| StoreError::Unreadable { column, reason: error.to_string() })
    }
}
