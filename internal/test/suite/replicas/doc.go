// Package replicas has tests of programs whose replicas divide what they watch (kates.Sharding):
// on the API server in memory, with and without sharded lists and watches.
package replicas
