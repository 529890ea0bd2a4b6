package applied

// Memory is what a client knows of its applies. The zero value is empty.
type Memory struct {
	Marks         Marks
	Entries       Entries
	Recollections Recollections
}
