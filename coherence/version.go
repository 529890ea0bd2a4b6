package coherence

import "k8s.io/apimachinery/pkg/util/resourceversion"

// Comparable reports whether v is a resource version that can be ordered. The empty version and
// "0" cannot.
func Comparable(v string) bool {
	_, err := resourceversion.CompareResourceVersion(v, v)
	return err == nil
}

// Newer reports whether version a is newer than version b. A version that cannot be ordered is
// older than every version that can, and not newer than another that cannot.
func Newer(a, b string) bool {
	if c, err := resourceversion.CompareResourceVersion(a, b); err == nil {
		return c > 0
	}
	return Comparable(a) && !Comparable(b)
}

// Newest returns the newer of two versions, a if neither is newer.
func Newest(a, b string) string {
	if Newer(b, a) {
		return b
	}
	return a
}
