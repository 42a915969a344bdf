//! Small inputs from the field, each with its right answer, by capability.

mod answers;
mod bills;
mod clients;
mod compressed;
mod joined;
mod secrets;
mod wires;
