// Package derive keeps results up to date at the cost of what has changed.
//
// A program that makes one result from whole snapshots makes all of it again for each change. A
// [Graph] makes again what the change concerns. A program declares once what is made of what. Then
// it calls [Graph.Update] with each snapshot. The results are always what an evaluation from
// scratch gives. A graph is evaluated by the caller, on one snapshot at a time: it has no
// goroutine, no queue and no lock.
//
//	g := derive.New[S]("routing table") // S is the snapshot
//	services := derive.Objects(g, "services", func(s *S) []*corev1.Service { return s.Services })
//	slices := derive.Objects(g, "slices", func(s *S) []*discoveryv1.EndpointSlice { return s.Slices })
//	slicesOf := derive.GroupBy(slices, "slices of", serviceOf)
//	row := func(r *derive.Reader, k Name, s *corev1.Service) (Row, error) {
//		return rowOf(s, slicesOf.Members(r, k)), nil
//	}
//	rows := derive.Map(services, "rows", row)
//
// The package is EXPERIMENTAL: its API may change in any version (CHANGELOG.md, Compatibility).
//
// It knows nothing of clients and streams, does no I/O, and takes the time for [Stats] alone. Any
// struct can be a snapshot. Below some hundred objects a plain loop is as fast and simpler.
//
// # The nodes
//
//   - Sources read the snapshot: [Objects], [Slice], [Input].
//   - [Map] and [FlatMap] run a function for each entry of a collection, [Compute] runs one.
//   - [Union] puts collections of one type of values together.
//   - [GroupBy], [ByLabels] and [BySelector] make entries known by other things than their keys.
//
// A function looks up what else it needs through its [Reader]: [Collection.Get], [Collection.All],
// [Index.Members], [Labeled.Select], [Selecting.Matching], [Value.Get]. Each look-up is recorded.
//
// # What a function may do
//
// The result of a function follows from its arguments and its look-ups, and from nothing else: no
// clock, no chance, no variable that changes, no order of a map. It writes to nothing that it was
// given, and to nothing that it has returned. Values are shared; they may be kept, and read by any
// goroutine. [Graph.Verify], [Verified] and [Audit] find functions that break this.
//
// # Keys
//
// A key is a string, an integer, a bool, an array or a struct of these, or has a method Compare.
// That method is 0 for keys that are equal by ==, and for no others. Keys are in the order of
// their values, field by field: a NamespacedName goes by namespace, then by name.
//
// # Rules
//
//  1. Order. Nodes are evaluated in the order of their declaration, each once in an Update. A
//     function can read the nodes that are declared before its own. To read another one panics, and
//     the entry is invalid. So there are no cycles, and what is read is final for this snapshot.
//  2. Questions. A look-up is a question: an entry by its key, an absent key, a whole collection, a
//     group, a selection, a value. The graph links each question with those who asked it.
//  3. Runs. The function of an entry runs if the entry is new, its input has changed, or the answer
//     to one of its questions has changed. It runs once in an Update, however many of these hold.
//  4. Links. After a run the entry is linked with what this run has asked, and with nothing else. A
//     question about an absent key, and a selection, are forgotten when their last asker is gone.
//  5. Cutoff. A result that equals the last one changes nothing: the old value stays, and those who
//     asked for it do not run. Errors are equal if their texts are.
//  6. Departure. An entry whose input is gone goes in the same Update, with what it has put and
//     asked. A key that is absent in one Update is a new entry when it comes back. An object that
//     was deleted and created again between two Updates is a changed input.
//  7. Faults. A function that returns an error, or panics, makes its entry invalid, and so does an
//     [Equal] that panics. If the input of
//     an entry is invalid, the entry is invalid for the same reason, and its function does not run.
//     A look-up of an invalid entry returns an error, which a function can handle. An invalid entry
//     is in no group and no selection. Its function runs again when an answer changes.
//  8. Doubles. A key that is twice in a slice, or put twice in one run, makes that key invalid.
//     Entries of different inputs cannot have one key: [From] says which input an entry comes from.
//
// # Why the results are those of an evaluation from scratch
//
// The argument is an induction over the nodes, in their order. A source compares the snapshot's
// slice with the last one. An element at the same address, or with an equal value, is the same
// element, because nothing that was delivered is written to. So a source is right.
//
// Let all nodes before a node be right. An entry of the node that ran in this Update has read
// final values (rule 1), so it has what a run from scratch gives. Take an entry that did not run.
// Its input is the same as in its last run (rule 3). A function from scratch with that input asks
// the same first question, because nothing else decides what it does. The answer is the same, else
// the entry had run (rules 3 and 4). So the function asks the same second question, and so on to
// its end: it returns what the entry has. Cutoff keeps this up to the equality of the node: what a
// given [Equal] does not tell apart must not matter to those who read the value.
//
// An index and a selection are right because each change of an entry takes the entry out of the
// groups, or the labels, under which it was noted, and notes it under the new ones.
//
// # Cost
//
// An Update compares the slices of the fields that have changed: eight bytes for each object. It
// runs the functions of the entries concerned. It copies eight bytes for each member of a group or
// a selection that has changed. An object that comes or goes moves some bytes for each object
// behind it. Nothing else depends on how much there is. bench/RESULTS.md has figures.
package derive
