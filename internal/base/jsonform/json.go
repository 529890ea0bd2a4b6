package jsonform

import (
	"bytes"
	"encoding/json"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Encode encodes a value as JSON.
func Encode(v any) ([]byte, error) { return json.Marshal(v) }

// Decode decodes JSON as untyped objects hold it: integers stay integers.
func Decode(data []byte, v any) error { return utiljson.Unmarshal(bytes.TrimSpace(data), v) }
