// Package conformance says how an API server answers: scripts of raw HTTP requests, and the
// answers that the real kube-apiserver gave. [Check] runs the scripts on a server and compares.
// The e2e tests run it on the real one, so a new version that answers otherwise is noticed. The
// unit tests run it on servers in memory, so that these do not drift from the real one.
//
// # Scripts
//
// Each file testdata/TOPIC.case has the cases of a topic, and TOPIC.answers their answers, which
// only [Update] writes. A script is read line by line:
//
//	# a comment
//	let cm = /api/v1/namespaces/$ns/configmaps
//	ignore: status.conditions
//
//	=== an update of an old version is a conflict
//	a = POST $cm
//	  {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
//	MERGE $cm/a
//	  {data: {k: v}}
//	PUT $cm/a
//	  {apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "$a.rv"}}
//
// "let" names a text, for all cases of the file that follow. "===" begins a case. A step is a
// verb, a path with its query (which is escaped here, not in the script), and after " | " each a
// header or a modifier. Indented lines beneath it are its body, in YAML or JSON.
//
// The verbs are HTTP's, and
//
//	MERGE, JSON, STRATEGIC, APPLY  a PATCH with that content type
//	w = WATCH path     opens a watch; only an answer other than 200 is an answer
//	NEXT w n           reads the next n events
//	UNTIL w name       reads events up to that of the object of this name
//	BOOKMARK w         reads events up to a bookmark, of another watch if this one ends
//	                   before: a server may be late
//	END w              reads events until the server ends the watch
//	CLOSE w            ends the watch
//	COMPACT            makes the storage forget its past
//
// The modifiers are
//
//	raw                the body is sent as it is, not as JSON
//	messages           messages of the Status are compared, too
//	quiet              only the code is an answer
//	protobuf           the body is sent, and the answer is asked for, in protobuf
//	for a b c          the step runs for each of these texts, which $each stands for
//	until 200          the step runs again until the code is this one; only this answer counts
//	until 200 text     and until the body contains the text
//	drop a b           these parts of the body are no part of the answer
//	keep a b           only these are
//
// $ns is the case's own namespace, which exists, and a prefix for names of its own of what has no
// namespace. $x63 is a text of 63 letters. A step that begins with "a =" names its answer:
// $a.uid, $a.rv (the version; $a.rv+1000 and $a.rv-1 are others), $a.continue, and
// $a.path.to.field.
//
// Lines of a case, or of the file before its first case: "ignore:" and "only:" are fields of the
// objects that are not compared, or that alone are; "messages" as above; "alone" is for a case
// that compacts ([CheckCompaction]).
//
// # Answers
//
// An answer is the code, headers that matter, and the body, with what differs between two runs
// masked: UIDs become u1, u2 in the order in which they appear, versions of objects v1, v2 in
// their own order, versions of lists and bookmarks ">=v2" (the newest version of an object that is
// not newer), times t, and the end of a generated name its number. Texts that the script contains
// are not masked. Managed fields have a short form. Bookmarks come when the server likes, so they
// count only where a step asks for them. Messages of a Status are compared only where a step says
// so.
//
// New cases get their answers by, in e2e,
//
//	go test ./conformance -update -topics create,delete
package conformance
