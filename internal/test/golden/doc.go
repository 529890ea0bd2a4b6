// Package golden turns what a test has got into a text that is the same in each run, compares it
// with a file, and shows differences. Package katestest has the face of it.
//
// Start from [Text]: it takes snapshots, objects, and what is made of them. What differs from run
// to run is masked ([Masks]): versions, UIDs and times. The values of Secrets are hashed, so they
// are in no file and in no output of a test. [State] is the text of all objects of a server.
// [Check] compares a text with a golden file, or writes the file ([Updating]).
//
// It knows nothing of clients and servers.
package golden
