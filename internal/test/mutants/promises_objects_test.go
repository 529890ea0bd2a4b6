package mutants

// writes are mistakes in write methods.
var writes = []mutant{
	{
		name: "fields that others have changed stay theirs", says: "ApplyOwned sends what differs and nothing else, and removes what is no longer there",
		in: "Check.covers", caught: "TestAnApplierOwnsJustWhatItAppliesOrSomebodyHasChangedIt",
		old: `if !o.has(set, fieldpath.PathElement{FieldName: &name}, part) {
				return false
			}`,
		new: `if e := (fieldpath.PathElement{FieldName: &name}); !o.has(set, e, part) && set.Members.Has(e) {
				return false
			}`,
	},
	{
		name: "what a schema has lost is not missed", says: "ApplyOwned sends what differs and nothing else, and removes what is no longer there",
		in: "Check.has", caught: "TestWhatTheManagedFieldsSayOfAFieldThatIsLostIsNotGoneBy",
		old: `set.Members.Has(e) && o.hasWhole(e, part) && o.kept(part)`,
		new: `set.Members.Has(e) && o.hasWhole(e, part)`,
	},
	{
		name: "InOrder is ignored", says: "ApplyOwned reports in the order of its objects, and keeps that order if it is told to",
		in: "call.stages", caught: "TestAnObjectOfAnOwnedSetWaitsForThoseThatTheServerWantsFirst",
		old: `a.given.InOrder || last != next && (foundations[last] || foundations[next])`,
		new: `last != next && (foundations[last] || foundations[next])`,
	},
	{
		name: "a JSON patch that is refused is an error", says: "Modify changes nothing that the caller's type does not know",
		in: "Patch.Refused", caught: "TestModifyReadsTheObjectWhereItsJSONPatchIsRefused",
		old: `p.Type == types.JSONPatchType`,
		new: `false`,
	},
	{
		name: "a Get drops pending writes", says: "a read outside of a watch changes nothing that watches show",
		in: "Client.Get", caught: "TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown/Get",
		old: `got, err := c.core.Get(ctx, o)`,
		new: `got, err := c.core.Get(ctx, o)
			none := write.Reply{}
			none.Key = o.Key()
			_ = c.core.Streams.Begin(o.Resource, o.Key()).Commit(ctx, none.Outcome)`,
	},
	{
		name: "a GetCached reads past the own writes", says: "a read outside of a watch changes nothing that watches show",
		in: "Stream.Entry", caught: "TestG4AReadEndsNoOwnWriteThatTheWatchHasNotShown/GetCached",
		old: `s.store.Read(key)`,
		new: `s.store.Objects[key]`,
	},
	{
		name: "a write that failed is an own write", says: "a write whose outcome is unknown is an error, and no write is sent again by the client",
		in: "Writer.request", caught: "TestG4AnErrorOfAWriteIsNoSuccessAndNoOwnWrite",
		old: `begun.Abandon()`,
		new: `c.commit(ctx, begun, o, a.Outcome)`,
	},
	{
		name: "client-go sends writes again", says: "a write whose outcome is unknown is an error, and no write is sent again by the client",
		in: "connection.Connect", caught: "TestG4NoWriteIsStoredTwiceAndTheWatchTellsWhatBecameOfIt",
		old: `config.WrapTransport = transport.Wrappers(config.WrapTransport, Once)`,
		new: `_ = transport.Wrappers`,
	},
	{
		name: "the causes of a refusal quote the Secret", says: "no error quotes a Secret",
		in: "Subject.discreetly", caught: "TestNoErrorOfARequestQuotesASecret",
		old: `status.Details.Causes[i].Message = hide.Replace(status.Details.Causes[i].Message)`,
		new: `_ = i`,
	},
	{
		name: "what Modify sends may be quoted", says: "no error quotes a Secret",
		in: "Writer.patchFrom", caught: "TestNoErrorQuotesWhatAPatchSendsAlone",
		old: `m.object.Sent = data`,
	},
}

// held are mistakes with what is held of an object.
var held = []mutant{
	{
		name: "a part has the objects of other namespaces", says: "a query for a part of what a watch has is served from it, and shows no other object",
		in: "Part.Has", caught: "TestANamespaceIsServedByAWatchOfAll",
		old: `p.namespace != "" && o.GetNamespace() != p.namespace`,
		new: `false`,
	},
	{
		name: "typed objects are decoded as a whole", says: "an object of which a part is held is the whole one without the other fields",
		in: "decoder.whole", caught: "TestOnlyWhatIsKeptIsHeld/server",
		old: `kept, err := d.only.of(raw, e)`,
		new: `kept, err := raw, error(nil)`,
	},
	{
		name: "a narrower path takes the rest of a wider one away", says: "an object of which a part is held is the whole one without the other fields",
		in: "node.add", caught: "TestPathsAreMergedSortedAndReadAgain",
		old: `case there && next.members == nil:
			return`,
		new: `case there && next.members == nil:
			next.members = map[string]*node{}`,
	},
	{
		name: "a misspelt path is a field that is always empty", says: "an object of which a part is held is the whole one without the other fields",
		in: "Compiler.form", caught: "TestProjectionsThatMakeNoSenseAreErrorsAtWatch",
		old: `if _, err := k.For(typ); err != nil {
				return "", fmt.Errorf("its Projection: %w", err)
			}`,
		new: `if _, err := k.For(typ); err != nil && false {
				return "", fmt.Errorf("its Projection: %w", err)
			}`,
	},
	{
		name: "a part of an object is the base of a Modify", says: "what is held in part is never the base of a write",
		in: "Set.Newest", caught: "TestNothingThatWasNotReadIsWrittenBack/modify",
		old: `st.HoldsForm()`,
		new: `st.Transform == nil`,
	},
	{
		name: "a copy of a part replaces the whole", says: "what is held in part is never the base of a write",
		in: "Core.CheckWhole", caught: "TestACopyOfAnObjectThatIsHeldInPartReplacesNothing",
		old: `held == ""`,
		new: `true`,
	},
	{
		name: "an empty list and none are one", says: "a field of structs is a whole object's in all that it has",
		in: "Projected.Share", caught: "TestAListThatIsNoLongerThereIsNil",
		old: `shown != nil && SameValue(p.value, shown) && reflect.DeepEqual(p.value, shown)`,
		new: `shown != nil && SameValue(p.value, shown)`,
	},
	{
		name: "what the predicate rejects has to decode", says: "an object's own functions read it as its query holds it",
		in: "Accumulator.rowOf", caught: "TestSuite/APredicateDecidesBeforeTheObjectIsDecodedAndWithoutLocks",
		old: `pass, err := a.judge(i, o)`,
		new: `if row := a.convert(i, o); row.Err != nil {
				return row
			}
			pass, err := a.judge(i, o)`,
	},
	{
		name: "another key reads what the former query held", says: "an object's own functions read it as its query holds it",
		in: "Partitions.rekeyed", caught: "TestAnotherKeyBesideAStructReadsWhatItNeeds",
		old: `o`,
		new: `old.row.Source`,
	},
	{
		name: "slices are in the order of names alone",
		in:   "object.Compare", caught: "TestG9SlicesAreOrderedByNamespaceThenName",
		old: `if c := strings.Compare(a.Namespace, b.Namespace); c != 0 { ... }`,
	},
	{
		name: "a lookup changes under its reader",
		in:   "Table.unshare", caught: "TestG9G10ALookupShowsOneStateForEver",
		old: `t.sources, t.looked = slices.Clone(t.sources), nil`,
		new: `t.looked = slices.Clone([]any(nil))`,
	},
}
