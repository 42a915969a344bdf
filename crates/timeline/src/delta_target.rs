//! The names of what deltas change.

use afterimage_json::name_type;

name_type! {
    /// What a delta changes: an open vocabulary. Which place of the state a target stands for is
    /// said by a table, [`Targets`](crate::Targets).
    DeltaTarget {
        /// The player's character.
        PLAYER = "player",
        /// The characters of the game.
        NPC = "npc",
        /// The locations of the world.
        LOCATION = "location",
        /// The current scene.
        SCENE = "scene",
        /// The world.
        WORLD = "world",
        /// The quests.
        QUEST = "quest",
        /// Relationships, which are kept with the characters.
        RELATIONSHIP = "relationship",
        /// What is known. Roots at the whole state, so that a path names who knows it.
        KNOWLEDGE = "knowledge",
        /// The player's things.
        INVENTORY = "inventory",
        /// The time of the game.
        TIME = "time",
    }
}
