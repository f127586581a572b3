//! A cluster seen from outside: requests, watches, clients.

mod clients;
mod requests;
mod scale;
mod support;
mod watches;
