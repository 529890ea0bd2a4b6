// Package tree decodes JSON objects into maps and slices that equal parts of other objects share.
//
// Start at [Table]. An untyped object is mostly maps: a Go map of one key takes some 340 bytes,
// and a string in an interface 16 more than its text. But most parts of an object are in others,
// too: the containers of the pods of one application, the managed fields of one writer, the keys
// of all. A table remembers parts by their JSON texts. A text that it knows is not decoded, but is
// the value that it was decoded into before:
//
//	text ──▶ scan: is it JSON, where does each part end? ──▶ build, from the root
//	                                                           │ known text: the value of before
//	                                                           │ else: decode it, part by part
//	                                                           ▼
//	                                         seen for the second time: remember it
//
// Equal texts decode into equal values. So what a table returns is what plain decoding returns,
// whatever the table has in it: values are found by a hash, and the texts are compared.
//
// # What is held
//
// A table grows with what is repeated, to a fixed number of places and a fixed sum of the lengths
// of its texts. Then what was not asked for makes room for what is new. A text enters when it is
// seen for the second time, so what is in one object alone (names, versions, times) does not. One
// that no object has any more stays until its place is needed.
//
// # Who writes
//
// Nobody writes to maps and slices that are shared. A caller that may write says so: then all
// maps and slices are its own. Strings and numbers are shared in any case. What it has made of the
// object, and what did not come as bytes, is shared by [Table.Share], which copies what it would
// have to write to. It writes a text of each part, which is none of JSON, and looks that up.
package tree
