// Package source asks a server about one resource. A [Source] lists and watches it. [Requests] are
// the requests for one query: lists in pages, the opening of watches, look-ups of one object, and
// the questions how new the server is ([Requests.Newest]) and what has happened lately
// ([Requests.Recent]).
//
// An answer that no server should send is an error of its request ([Garbled], [CheckListVersion],
// [Check]). Package source holds no objects, and knows nothing of what is held.
package source
