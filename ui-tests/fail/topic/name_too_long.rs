//! A name of more than 249 characters.

use flechtwerk::prelude::*;

#[topic("longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong", key = Utf8, value = Utf8)]
pub struct Long;

fn main() {}
