package source

// pageBytes is about how many bytes a page has, once the size of the objects is known.
const pageBytes = 4 << 20

// pageLeast is the least number of objects in a page whose size follows their bytes. Objects of a
// megabyte come in pages of many times pageBytes, and not one by one.
const pageLeast = 50

// pageGrowth bounds how many times more objects a page has than all pages before it: what comes
// first need not be as large as the rest.
const pageGrowth = 10

// sizes says how many objects the next page of a list is to have, by the bytes of those that came.
type sizes struct {
	items, bytes int64
	remaining    *int64 // behind the last page, if the server has said it
}

// add notes a page that was read.
func (s *sizes) add(items, bytes int64, remaining *int64) {
	s.items += items
	s.bytes += bytes
	s.remaining = remaining
}

// next is the size of the page after those that were added. Of what is left, remaining, the server
// may have said how much it is. Then the pages are about equal, and none is for a small rest.
// Without a page there is no size but the one that is given.
func (s *sizes) next(size int64, remaining *int64) int64 {
	if s.items == 0 || s.bytes == 0 {
		return size
	}
	fit := max(pageBytes/max(s.bytes/s.items, 1), 1)
	if remaining != nil && *remaining > 0 {
		pages := max((*remaining+fit/2)/fit, 1)
		fit = (*remaining + pages - 1) / pages
	}
	return min(max(fit, pageLeast), pageGrowth*max(s.items, size))
}
