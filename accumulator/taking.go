package accumulator

// takeAll takes what is new of every field. It reports false where there can be no first
// snapshot yet: some stream has its list, but has given it up again; or nothing is left of what a query had
// that was replaced unread. One that was added, or replaced by one that wants more, is not waited for.
func (a *Accumulator) takeAll(b layout) bool {
	defer a.know(b.fields)
	a.streams.reach(atComplete, nil, Key{})
	for _, f := range ranked(b.fields) {
		whole := f.present || a.fieldComplete(f) || a.stillComplete(f)
		switch {
		case whole && f.source != nil:
			a.takeFollowed(f)
			f.source.kept.Store(false)
		case whole:
			f.got = a.takeField(f)
		}
		if f.got.ok || a.reader.delivered || whole && a.without(f) || !f.counted.Load() {
			continue // one that is not whole was added, or its kind appeared, since
		}
		for _, other := range b.fields {
			if other.got.ok || other == f {
				a.untake(other)
				other.got = taken{}
			}
		}
		return false
	}
	a.streams.reach(atTaken, nil, Key{})
	return true
}

// without reports whether an optional field is complete without anything: there is no such kind, or no
// right to it.
func (a *Accumulator) without(f *field) bool {
	parts, spaces, known := a.of(f)
	switch {
	case !known:
		return a.isAbsent(f)
	case spaces != nil && f.query.Optional && spaces.refused():
		return true // nobody can say which namespaces count
	}
	optional := a.queryOf(f).Optional
	for _, p := range parts {
		if !optional || !p.sub.refused() {
			return false
		}
	}
	return true
}
