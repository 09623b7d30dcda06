export const größe = 1;
