// Package hostile has no code but tests: of a client whose server, or a proxy before it, answers
// watches with what no server should send. The server is real HTTP over connections in memory, so
// that the tests run in synctest's time.
package hostile
