//! Recorded traffic and logs of gateways.
