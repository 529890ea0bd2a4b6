package kates

import (
	"encoding/json"
	"testing"
)

func FuzzADeltaIsReadAsItWasWritten(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","metadata":{"name":"a"},"deltaType":"update","query":"Pods"}`))
	f.Add([]byte(`{"deltaType":7}`))
	f.Add([]byte(`{"deltaType":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d, again Delta
		if json.Unmarshal(data, &d) != nil {
			return
		}
		text, err := json.Marshal(&d)
		if err != nil {
			t.Fatalf("%s: %v", data, err)
		}
		if err := json.Unmarshal(text, &again); err != nil || again.DeltaType != d.DeltaType || again.Query != d.Query || again.Name != d.Name {
			t.Fatalf("%s is written as %s: %v", data, text, err)
		}
	})
}
