// Package recording records what a client reads from an API server, and plays it back. Package
// katestest is its public face.
//
//	Writer, Read      the file: records, compressed, readable up to where a program crashed
//	Recorder          the transport that makes a file; redactor takes the secrets out
//	history           what a recording knows of one list and its watches, in order of versions
//	Player            the transport that answers lists and watches from histories, at a position
//
// The format of the file is in docs/recording.md, which is the authority. An answer is cut and
// built by answer.go, with package frames, in JSON and in Kubernetes' protobuf.
package recording
