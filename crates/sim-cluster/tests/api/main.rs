//! A cluster seen from outside: requests, watches, clients.

mod access;
mod autoscalers;
mod bodies;
mod clients;
mod requests;
mod scale;
mod secrets_and_leases;
mod support;
mod watches;
