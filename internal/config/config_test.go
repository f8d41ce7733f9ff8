package config

import (
	"testing"
)

func TestDefaultsLoad(t *testing.T) {
	c := Defaults()
	if c.MaxTurns != 50 || c.AttachBudget != 24*1024 || c.Protocol != ProtocolTags || !c.ReasoningCommands {
		t.Fatalf("defaults: %+v", c)
	}
}
