package accumulator

// advance applies what was taken, and finds the keys that it changes.
func (p *Partitions) advance(b layout) {
	var invalid []Invalid
	first, greet := !p.a.reader.delivered, false
	for i, f := range b.fields {
		t := f.got
		if f.got = (taken{}); !t.ok {
			continue
		}
		present := !p.a.vanished(f)
		turned := present != f.present
		f.present = present
		moves := p.a.moves(row{b, i}, t)
		p.a.reader.mu.Lock()
		f.index.apply(moves)
		p.a.reader.mu.Unlock()
		if p.lookups[i] != nil {
			p.consult(i, moves)
		} else {
			p.place(i, len(b.fields), moves)
		}
		p.alert(i, unmoved(t.loud, moves), turned && !first)
		for _, s := range moves {
			greet = greet || p.lookups[i] == nil && s.loud && (s.old.shared() || s.now.shared())
			if s.now != nil && s.now.row.Err != nil {
				invalid = append(invalid, Invalid{f.name, s.now.row.Source, s.now.row.Err})
			}
		}
	}
	if greet {
		p.greet()
	}
	p.tookIn()
	p.a.reader.delivered = true
	p.a.mu.Lock()
	p.a.read = b.generation
	p.a.mu.Unlock()
	p.a.report(invalid)
}

// open makes an index for each field.
func (p *Partitions) open(b layout) {
	p.a.reader.mu.Lock()
	defer p.a.reader.mu.Unlock()
	for i, f := range b.fields {
		if f.index == nil {
			f.index = &index{objects: make(map[Key]*placed), shared: b.NewTable(i)}
		}
	}
}

// alert activates the partitions in which one of these objects of a field has changed, or, with
// all, every partition.
func (p *Partitions) alert(i int, keys []Key, all bool) {
	if len(keys) == 0 && !all {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for e := range p.agenda.running() {
		p.parts[e.key].shares[i].shout(keys)
	}
	for _, part := range p.parts {
		if all || part.touched(i, keys) {
			part.forced = part.forced || all
			p.activate(part)
		}
	}
}

// greet activates all partitions, also those that a change for all of them has just made.
func (p *Partitions) greet() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		if part.fresh {
			p.activate(part)
		}
	}
}

// place hands the moves of a field to the partitions of these objects.
func (p *Partitions) place(i, fields int, moves []moved) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range moves {
		var had, has []string
		if s.old != nil {
			had = s.old.keys
		}
		if s.now != nil {
			has = s.now.keys
		}
		for _, key := range has {
			if p.parts[key] == nil {
				p.parts[key] = &partition{entry: entry{key: key}, fresh: true, shares: make([]share, fields)}
			}
			p.parts[key].count(i, 1)
		}
		for _, key := range had {
			p.parts[key].count(i, -1)
		}
		if s.old.shared() || s.now.shared() {
			for _, part := range p.parts {
				p.touch(part, i, s)
			}
		} else {
			for _, key := range had {
				p.touch(p.parts[key], i, s)
			}
			for _, key := range has {
				if !s.old.owned(key) {
					p.touch(p.parts[key], i, s)
				}
			}
		}
		for _, key := range had {
			if part := p.parts[key]; part.objects == 0 {
				p.losing = append(p.losing, part)
			}
		}
	}
}

// tookIn forgets the partitions whose key no object has now. A partition that has lost an object
// of one field and got one of another has always been there, and stays due.
func (p *Partitions) tookIn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.losing {
		if p.parts[part.key] == part {
			p.emptied(part)
		}
	}
	p.losing, p.begun = nil, true
}

func (p *partition) count(i, n int) {
	p.objects += n
	p.shares[i].own += n
}

// touch is called with mu held.
func (p *Partitions) touch(part *partition, i int, s moved) {
	part.touch(i, s)
	if s.loud {
		p.activate(part)
	}
}

// emptied forgets a partition without objects, or makes its last turn due. Called with mu held.
func (p *Partitions) emptied(part *partition) {
	switch {
	case part.objects > 0:
	case part.owed:
		p.activate(part)
	default:
		p.forget(part)
	}
}

// forget is called with mu held.
func (p *Partitions) forget(part *partition) {
	p.unread(part)
	delete(p.parts, part.key)
	p.agenda.drop(&part.entry)
}
