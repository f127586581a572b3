//! A cluster seen from outside: requests, watches, clients.

mod clients;
mod requests;
mod support;
mod watches;
