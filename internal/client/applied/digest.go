package applied

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
)

// annotationFor returns the annotation for sets with another label than the default. Sets of
// different labels may share an object, and each has its own annotation there.
func annotationFor(annotation, label string) string {
	sum := sha256.Sum256([]byte(label))
	return annotation + "-" + hex.EncodeToString(sum[:8])
}

// Digest makes the annotation's value from the applied parts.
func Digest(parts ...any) (string, error) {
	h := sha256.New()
	for enc, i := json.NewEncoder(h), 0; i < len(parts); i++ {
		if err := enc.Encode(parts[i]); err != nil {
			return "", err
		}
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]), nil
}
