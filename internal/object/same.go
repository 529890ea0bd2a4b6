package object

// Alike reports whether two objects have the same content, all of it. It runs no code of the user.
func Alike(a, b Object) bool {
	a, b = Bare(a), Bare(b)
	ra, left := a.(*rejected)
	rb, right := b.(*rejected)
	if left && right {
		return ra.text == rb.text && SameContent(&ra.PartialObjectMetadata, &rb.PartialObjectMetadata) &&
			SameContent(ra.metadata, rb.metadata) && sameOriginal(ra.original, rb.original)
	}
	return left == right && SameContent(a, b)
}

// LookAlike reports whether two versions of an object look the same to a reader. That is so if they
// are alike, and if they differ in what is held of them beside a struct.
func LookAlike(a, b Object) bool {
	a, b = Bare(a), Bare(b)
	pa, some := a.(*Projected)
	pb, others := b.(*Projected)
	if some && others {
		return SameShown(pa, pb)
	}
	return Alike(a, b)
}
