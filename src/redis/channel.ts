/** The channel on which nodes tell each other that a key or an organization changed: its id is the message. */
export const changed_channel = "service:key_changed";
