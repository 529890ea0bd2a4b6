// Package shared has the part of a client of package kates that all clients have in common which
// With returns: its connection, its streams, and what runs on them.
//
// Begin at [Client]. Package kates makes one, has the options and the public types, and calls
// methods of this package. Other packages of the library get it from package doors.
//
//	connection.go  another connection, which cluster it is, and what options make of a REST
//	               configuration
//	told.go        how observers are told
//	health.go      what a client waits for, and what hangs
//	logs.go        readers of the logs of pods
//	origin.go      whose objects a warm start may begin with
package shared
